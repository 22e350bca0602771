"""The cluster's own authorities and what they sign: EC P-256 keys, 0600, renewed well before they expire.

Four authorities, so that no certificate is good for more than it is for: `ca` (API server, kubelet, clients),
`etcd-ca`, `front-proxy-ca` (aggregated APIs) and `pods-ca` (the channel of pods). The layout and the names of users
and groups are those of kubeadm (Kubernetes: PKI certificates and requirements).

`ensure` may run again at any time, also while the programs run: each of them reads its files anew for new connections.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from isthmus.controlplane.layout import Layout
from isthmus.support import durable

AUTHORITIES = ("ca", "etcd-ca", "front-proxy-ca", "pods-ca")
AUTHORITY_LIFE = timedelta(days=3650)
LIFE = timedelta(days=365)
# Renewed when less is left: a cluster that is down over the summer still starts by itself.
RENEWAL = timedelta(days=120)
# Clocks of nodes differ.
_EARLIER = timedelta(minutes=5)
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
    """Make what is missing, about to expire, or names another address; return the names of what was made."""
    now = now or datetime.now(UTC)
    layout.pki.mkdir(mode=0o700, parents=True, exist_ok=True)
    made = [name for name in AUTHORITIES if _ensure_authority(layout, name, now)]
    if not layout.key("sa").exists():
        key = ec.generate_private_key(ec.SECP256R1())
        public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        durable.write(layout.pki / "sa.pub", public.decode(), 0o600)
        _write_key(layout, "sa", key)
        made.append("sa")
    return [*made, *(leaf.name for leaf in leaves(names) if _ensure_leaf(layout, leaf, now))]


def expiries(layout: Layout) -> Iterator[tuple[str, datetime]]:
    """Yield each certificate's name and end."""
    for path in sorted(layout.pki.glob("*.crt")):
        yield path.stem, _read(layout, path.stem).not_valid_after_utc


def _ensure_authority(layout: Layout, name: str, now: datetime) -> bool:
    if layout.certificate(name).exists():
        return False
    key = ec.generate_private_key(ec.SECP256R1())
    subject = _subject(f"isthmus {name}", ())
    builder = _builder(subject, subject, key, now, now + AUTHORITY_LIFE)
    usage = x509.KeyUsage(True, False, False, False, False, True, True, False, False)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    builder = builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    certificate = builder.add_extension(usage, critical=True).sign(key, SHA256())
    _write_key(layout, name, key)
    _write_certificate(layout, name, certificate)
    return True


def _ensure_leaf(layout: Layout, leaf: Leaf, now: datetime) -> bool:
    authority = _read(layout, leaf.authority)
    if _is_good(layout, leaf, authority, now):
        return False
    key = ec.generate_private_key(ec.SECP256R1())
    end = min(now + LIFE, authority.not_valid_after_utc)
    builder = _builder(_subject(leaf.user, leaf.groups), authority.subject, key, now, end)
    usage = x509.KeyUsage(True, False, False, False, False, False, False, False, False)
    builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    builder = builder.add_extension(usage, critical=True)
    builder = builder.add_extension(x509.ExtendedKeyUsage([_USAGES[each] for each in leaf.usages]), critical=False)
    if alternatives := _alternatives(leaf):
        builder = builder.add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
    signer = _read_key(layout, leaf.authority)
    # Python's ssl refuses a certificate without it from 3.13 on.
    by = x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key())
    builder = builder.add_extension(by, critical=False)
    # The key first: a crash in between leaves a pair that does not fit, which the next call makes anew.
    _write_key(layout, leaf.name, key)
    _write_certificate(layout, leaf.name, builder.sign(signer, SHA256()))
    return True


def _is_good(layout: Layout, leaf: Leaf, authority: x509.Certificate, now: datetime) -> bool:
    try:
        found, key = _read(layout, leaf.name), _read_key(layout, leaf.name)
        found.verify_directly_issued_by(authority)
    except (FileNotFoundError, ValueError, TypeError, InvalidSignature):
        return False
    return (
        found.public_key() == key.public_key()
        and found.subject == _subject(leaf.user, leaf.groups)
        and found.not_valid_after_utc - now > RENEWAL
        and set(_alternatives_of(found)) == set(_alternatives(leaf))
    )


def _alternatives(leaf: Leaf) -> list[x509.GeneralName]:
    return [*map(x509.DNSName, dict.fromkeys(leaf.hosts)), *map(x509.IPAddress, dict.fromkeys(leaf.addresses))]


def _alternatives_of(certificate: x509.Certificate) -> Sequence[x509.GeneralName]:
    try:
        return list(certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value)
    except x509.ExtensionNotFound:
        return []


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, now: datetime, end: datetime
) -> x509.CertificateBuilder:
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key.public_key())
    builder = builder.serial_number(x509.random_serial_number())
    return builder.not_valid_before(now - _EARLIER).not_valid_after(end)


def _subject(user: str, groups: Sequence[str]) -> x509.Name:
    group_names = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    return x509.Name([*group_names, x509.NameAttribute(NameOID.COMMON_NAME, user)])


def _read(layout: Layout, name: str) -> x509.Certificate:
    return x509.load_pem_x509_certificate(layout.certificate(name).read_bytes())


def _read_key(layout: Layout, name: str) -> ec.EllipticCurvePrivateKey:
    key = load_pem_private_key(layout.key(name).read_bytes(), password=None)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise TypeError(f"{layout.key(name)} is no EC key")
    return key


def _write_key(layout: Layout, name: str, key: ec.EllipticCurvePrivateKey) -> None:
    text = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    durable.write(layout.key(name), text, 0o600)


def _write_certificate(layout: Layout, name: str, certificate: x509.Certificate) -> None:
    durable.write(layout.certificate(name), certificate.public_bytes(Encoding.PEM).decode(), 0o600)
