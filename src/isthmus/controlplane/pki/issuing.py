"""What the cluster's own authorities sign: EC P-256 keys, 0600, renewed well before they expire.

Four authorities, so that no certificate is good for more than it is for: `ca` (API server, kubelet, clients),
`etcd-ca`, `front-proxy-ca` (aggregated APIs) and `pods-ca` (the channel of pods); `authorities` describes how one
succeeds another. The layout and the names of users and groups are those of kubeadm (Kubernetes: PKI certificates and
requirements).

`ensure` may run again at any time, also while the programs run: each of them reads its files again for new connections.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from ipaddress import IPv4Address

from cryptography import x509

from isthmus.controlplane.layout import Layout
from isthmus.controlplane.pki import authorities, files
from isthmus.controlplane.pki.authorities import Authority
from isthmus.controlplane.pki.files import LIFE, RENEWAL
from isthmus.support import certificates, durable
from isthmus.support.certificates import Issuer, Subject, Usage


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
    usages: tuple[Usage, ...] = (Usage.CLIENT,)
    hosts: tuple[str, ...] = ()
    addresses: tuple[IPv4Address, ...] = ()


def leaves(names: Names) -> tuple[Leaf, ...]:
    """Return all certificates of a control plane."""
    local = IPv4Address("127.0.0.1")
    api = ("kubernetes", "kubernetes.default", "kubernetes.default.svc", f"kubernetes.default.svc.{names.domain}")
    both = (Usage.SERVER, Usage.CLIENT)
    return (
        Leaf(
            "apiserver",
            "ca",
            "kube-apiserver",
            usages=(Usage.SERVER,),
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
        durable.write(layout.pki / "sa.pub", certificates.public_pem(key.public_key()), 0o600)
        files.write_key(layout.key("sa"), key)
        made.append("sa")
    signers = {name: authorities.read(layout, name, now) for name in authorities.NAMES}
    files.write(layout.certificate(authorities.SIGNER), [signers["ca"].signer])
    return [*made, *(leaf.name for leaf in leaves(names) if _ensure_leaf(layout, leaf, signers[leaf.authority], now))]


def expiries(layout: Layout) -> Iterator[tuple[str, datetime]]:
    """Yield each certificate's name and end; of an authority, that of what signs."""
    for path in sorted(layout.pki.glob("*.crt")):
        if path.stem != authorities.SIGNER:
            yield path.stem, files.read(path)[0].not_valid_after_utc


def _ensure_leaf(layout: Layout, leaf: Leaf, authority: Authority, now: datetime) -> bool:
    if _is_good(layout, leaf, authority, now):
        return False
    key, issuer = certificates.new_key(), Issuer(authority.signer, files.read_key(layout.key(leaf.authority)))
    subject = Subject(_name(leaf), leaf.usages, _alternatives(leaf))
    # The key first: a crash in between leaves a pair that does not fit, which the next call makes again.
    files.write_key(layout.key(leaf.name), key)
    files.write(layout.certificate(leaf.name), [certificates.leaf(subject, key.public_key(), issuer, LIFE, now)])
    return True


def _is_good(layout: Layout, leaf: Leaf, authority: Authority, now: datetime) -> bool:
    try:
        found = files.read(layout.certificate(leaf.name))[0]
        key = files.read_key(layout.key(leaf.name))
    except (FileNotFoundError, ValueError, TypeError):
        return False
    return (
        found.public_key() == key.public_key()
        and found.subject == _name(leaf)
        and not certificates.is_due(found, authority.signer, RENEWAL, now)
        and set(certificates.alternatives(found)) == set(_alternatives(leaf))
    )


def _name(leaf: Leaf) -> x509.Name:
    return certificates.name(leaf.user, leaf.groups)


def _alternatives(leaf: Leaf) -> list[x509.GeneralName]:
    return [*map(x509.DNSName, dict.fromkeys(leaf.hosts)), *map(x509.IPAddress, dict.fromkeys(leaf.addresses))]
