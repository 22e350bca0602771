"""Keys and certificates of a cluster as the kubelet finds them, made for one test: ca, pods-ca, sa, who they sign."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

# Name of the file: common name, organization.
SIGNED = {
    "apiserver": ("kube-apiserver", ""),
    "admin": ("admin", "system:masters"),
    "nobody": ("nobody", ""),
    "kubelet": ("system:node:slurm", "system:nodes"),
    "apiserver-kubelet-client": ("kube-apiserver-kubelet-client", "system:masters"),
}


def write(folder: Path) -> Path:
    """Write everything; return the folder."""
    folder.mkdir(mode=0o700, parents=True)
    ca_key = _authority(folder, "ca")
    _authority(folder, "pods-ca")
    for file, (name, organization) in SIGNED.items():
        key = ec.generate_private_key(ec.SECP256R1())
        _write_key(folder / f"{file}.key", key)
        certificate = sign(subject(name, organization), key.public_key(), subject("ca"), ca_key)
        (folder / f"{file}.crt").write_bytes(certificate.public_bytes(Encoding.PEM))
    account = ec.generate_private_key(ec.SECP256R1())
    _write_key(folder / "sa.key", account)
    public = account.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    (folder / "sa.pub").write_bytes(public)
    return folder


def succeeded(old: Path, folder: Path) -> Path:
    """Write everything again, where the channel's old authority is believed beside the new one; return the folder."""
    write(folder)
    both = (folder / "pods-ca.crt").read_bytes() + (old / "pods-ca.crt").read_bytes()
    (folder / "pods-ca.crt").write_bytes(both)
    return folder


def subject(name: str, organization: str = "") -> x509.Name:
    """Return who a certificate is for."""
    parts = [x509.NameAttribute(NameOID.COMMON_NAME, name)]
    if organization:
        parts.append(x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization))
    return x509.Name(parts)


def sign(
    name: x509.Name, key: ec.EllipticCurvePublicKey, issuer: x509.Name, issuer_key: ec.EllipticCurvePrivateKey
) -> x509.Certificate:
    """Sign a certificate for servers on the loopback and for clients; one that signs itself is an authority."""
    now = datetime.now(UTC)
    end = now + timedelta(days=100 if name == issuer else 1)
    builder = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(end)
        .add_extension(x509.BasicConstraints(ca=name == issuer, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()),
            critical=False,
        )
    )
    if name == issuer:
        usage = x509.KeyUsage(False, False, False, False, False, True, True, False, False)
        return builder.add_extension(usage, critical=True).sign(issuer_key, SHA256())
    names = [x509.DNSName("localhost"), x509.DNSName("kubernetes"), x509.IPAddress(IPv4Address("127.0.0.1"))]
    usages = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
    builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    return builder.add_extension(x509.ExtendedKeyUsage(usages), critical=False).sign(issuer_key, SHA256())


def _authority(folder: Path, name: str) -> ec.EllipticCurvePrivateKey:
    key = ec.generate_private_key(ec.SECP256R1())
    _write_key(folder / f"{name}.key", key)
    certificate = sign(subject(name), key.public_key(), subject(name), key)
    (folder / f"{name}.crt").write_bytes(certificate.public_bytes(Encoding.PEM))
    return key


def _write_key(path: Path, key: ec.EllipticCurvePrivateKey) -> None:
    path.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    path.chmod(0o600)
