"""A CA of a test's own, a certificate for servers on the loopback and one for clients, and a key pair for tokens.

The clients' has no name: etcd's gateway refuses one that has.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_BOTH = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]


def write(folder: Path, address: str = "127.0.0.1") -> None:
    """Write ca.crt, etcd.{crt,key}, client.{crt,key} and token.{key,pub}; servers are at an address."""
    folder.mkdir()
    ca_key = ec.generate_private_key(ec.SECP256R1())
    ca = _signed("test CA", ca_key, "test CA", ca_key, [])
    (folder / "ca.crt").write_bytes(ca.public_bytes(Encoding.PEM))
    for file, (name, usages) in {"etcd": ("etcd", _BOTH), "client": ("", _BOTH[1:])}.items():
        key = ec.generate_private_key(ec.SECP256R1())
        _write_key(folder / f"{file}.key", key)
        (folder / f"{file}.crt").write_bytes(
            _signed(name, key, "test CA", ca_key, usages, address=address).public_bytes(Encoding.PEM)
        )
    token = ec.generate_private_key(ec.SECP256R1())
    _write_key(folder / "token.key", token)
    public = token.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    (folder / "token.pub").write_bytes(public)


def write_channel(folder: Path, uid: str) -> None:
    """Write the channel's: ca.crt, kubelet.{crt,key} for its server, tls.{crt,key} of a pod."""
    folder.mkdir()
    ca_key = ec.generate_private_key(ec.SECP256R1())
    ca = _signed("pods CA", ca_key, "pods CA", ca_key, [])
    (folder / "ca.crt").write_bytes(ca.public_bytes(Encoding.PEM))
    for file, name, usages in (("kubelet", "isthmus-kubelet", _BOTH[:1]), ("tls", uid, _BOTH[1:])):
        key = ec.generate_private_key(ec.SECP256R1())
        _write_key(folder / f"{file}.key", key)
        signed = _signed(name, key, "pods CA", ca_key, usages, name)
        (folder / f"{file}.crt").write_bytes(signed.public_bytes(Encoding.PEM))


def _signed(
    name: str,
    key: ec.EllipticCurvePrivateKey,
    issuer: str,
    issuer_key: ec.EllipticCurvePrivateKey,
    usages: list[x509.ObjectIdentifier],
    host: str = "localhost",
    address: str = "127.0.0.1",
) -> x509.Certificate:
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)] if name else []))
        .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, issuer)]))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=not usages, path_length=None), critical=True)
    )
    if usages:
        names = [x509.DNSName(host), x509.IPAddress(IPv4Address(address))]
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        builder = builder.add_extension(x509.ExtendedKeyUsage(usages), critical=False)
    return builder.sign(issuer_key, SHA256())


def _write_key(path: Path, key: ec.EllipticCurvePrivateKey) -> None:
    path.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption()))
    path.chmod(0o600)
