"""What the cluster's own authorities sign: EC P-256 keys, 0600, renewed well before they expire.

Four authorities, so that no certificate is good for more than it is for: `ca` (API server, kubelet, clients),
`etcd-ca`, `front-proxy-ca` (aggregated APIs) and `pods-ca` (the channel of pods); `authorities` tells how one succeeds
another. The layout and the names of users and groups are those of kubeadm (Kubernetes: PKI certificates and
requirements).

`ensure` may run again at any time, also while the programs run: each of them reads its files again for new connections.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from ipaddress import IPv4Address

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from cryptography.x509.oid import ExtendedKeyUsageOID

from isthmus.controlplane.layout import Layout
from isthmus.controlplane.pki import authorities, certificates
from isthmus.controlplane.pki.authorities import Authority
from isthmus.controlplane.pki.certificates import LIFE, RENEWAL
from isthmus.support import durable

_USAGES = {"server": ExtendedKeyUsageOID.SERVER_AUTH, "client": ExtendedKeyUsageOID.CLIENT_AUTH}


@dataclass(frozen=True, slots=True)
class Names:
    """What servers are called.

    Attributes:
        user: the owner's login name.
        node: the name of the node object.
        domain: of Services.
        service: the address of the Service `kubernetes`.
        hosts: further names of the job.
        addresses: of the job.
    """

    user: str
    node: str
    domain: str
    service: IPv4Address
    hosts: tuple[str, ...] = ()
    addresses: tuple[IPv4Address, ...] = ()


@dataclass(frozen=True, slots=True)
class Leaf:
    """A certificate to have: file name, who signs it, whom it names, what it may be used for."""

    name: str
    authority: str
    user: str
    groups: tuple[str, ...] = ()
    usages: tuple[str, ...] = ("client",)
    hosts: tuple[str, ...] = ()
    addresses: tuple[IPv4Address, ...] = ()


def leaves(names: Names) -> tuple[Leaf, ...]:
    """Return all certificates of a control plane."""
    local = IPv4Address("127.0.0.1")
    api = ("kubernetes", "kubernetes.default", "kubernetes.default.svc", f"kubernetes.default.svc.{names.domain}")
    both = ("server", "client")
    return (
        Leaf(
            "apiserver",
            "ca",
            "kube-apiserver",
            usages=("server",),
            hosts=(*api, "localhost", *names.hosts),
            addresses=(local, names.service, *names.addresses),
        ),
        Leaf("apiserver-kubelet-client", "ca", "kube-apiserver-kubelet-client"),
        Leaf("apiserver-etcd-client", "etcd-ca", "kube-apiserver"),
        Leaf("etcd", "etcd-ca", "etcd", usages=both, hosts=("localhost",), addresses=(local,)),
        Leaf("front-proxy-client", "front-proxy-ca", "front-proxy-client"),
        Leaf("controller-manager", "ca", "system:kube-controller-manager", usages=both, addresses=(local,)),
        Leaf("coredns", "ca", "isthmus:coredns"),
        Leaf(
            "kubelet",
            "ca",
            f"system:node:{names.node}",
            ("system:nodes",),
            both,
            (names.node, "localhost", *names.hosts),
            (local, *names.addresses),
        ),
        Leaf("admin", "ca", names.user, ("system:masters",)),
    )


def ensure(layout: Layout, names: Names, now: datetime | None = None) -> list[str]:
    """Make what is missing, about to expire, or names another address; return the names of what was made.

    Raises:
        ControlPlaneError: an authority's key does not fit its certificate.
        OSError: a file cannot be read or written.
    """
    now = now or datetime.now(UTC)
    layout.pki.mkdir(mode=0o700, parents=True, exist_ok=True)
    made = [name for name in authorities.NAMES if authorities.ensure(layout, name, now)]
    if not layout.key("sa").exists():
        key = certificates.new_key()
        public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        durable.write(layout.pki / "sa.pub", public.decode(), 0o600)
        certificates.write_key(layout.key("sa"), key)
        made.append("sa")
    signers = {name: authorities.read(layout, name, now) for name in authorities.NAMES}
    certificates.write(layout.certificate(authorities.SIGNER), [signers["ca"].signer])
    return [*made, *(leaf.name for leaf in leaves(names) if _ensure_leaf(layout, leaf, signers[leaf.authority], now))]


def expiries(layout: Layout) -> Iterator[tuple[str, datetime]]:
    """Yield each certificate's name and end; of an authority, that of what signs."""
    for path in sorted(layout.pki.glob("*.crt")):
        if path.stem != authorities.SIGNER:
            yield path.stem, certificates.read(path)[0].not_valid_after_utc


def _ensure_leaf(layout: Layout, leaf: Leaf, authority: Authority, now: datetime) -> bool:
    if _is_good(layout, leaf, authority, now):
        return False
    key, issuer = certificates.new_key(), authority.signer
    end = min(now + LIFE, issuer.not_valid_after_utc)
    builder = certificates.builder(certificates.subject(leaf.user, leaf.groups), issuer.subject, key, now, end)
    usage = x509.KeyUsage(True, False, False, False, False, False, False, False, False)
    builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    builder = builder.add_extension(usage, critical=True)
    builder = builder.add_extension(x509.ExtendedKeyUsage([_USAGES[each] for each in leaf.usages]), critical=False)
    if alternatives := _alternatives(leaf):
        builder = builder.add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
    signer = certificates.read_key(layout.key(leaf.authority))
    # Python's ssl refuses a certificate without it from 3.13 on.
    by = x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key())
    builder = builder.add_extension(by, critical=False)
    # The key first: a crash in between leaves a pair that does not fit, which the next call makes again.
    certificates.write_key(layout.key(leaf.name), key)
    certificates.write(layout.certificate(leaf.name), [builder.sign(signer, SHA256())])
    return True


def _is_good(layout: Layout, leaf: Leaf, authority: Authority, now: datetime) -> bool:
    try:
        found = certificates.read(layout.certificate(leaf.name))[0]
        key = certificates.read_key(layout.key(leaf.name))
        found.verify_directly_issued_by(authority.signer)
    except (FileNotFoundError, ValueError, TypeError, InvalidSignature):
        return False
    end, last = found.not_valid_after_utc, authority.signer.not_valid_after_utc
    return (
        found.public_key() == key.public_key()
        and found.subject == certificates.subject(leaf.user, leaf.groups)
        # One that ends with its authority cannot be made to last longer.
        and (end - now > RENEWAL or end == last)
        and set(_alternatives_of(found)) == set(_alternatives(leaf))
    )


def _alternatives(leaf: Leaf) -> list[x509.GeneralName]:
    return [*map(x509.DNSName, dict.fromkeys(leaf.hosts)), *map(x509.IPAddress, dict.fromkeys(leaf.addresses))]


def _alternatives_of(certificate: x509.Certificate) -> Sequence[x509.GeneralName]:
    try:
        return list(certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value)
    except x509.ExtensionNotFound:
        return []
