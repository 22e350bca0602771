"""What the deployer signs: the cluster's own authorities, and the certificates of hosts.

Keys of authorities are made here and stay here; those of hosts are made there, and only their requests come.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.types import CertificatePublicKeyTypes
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from isthmus.filters.errors import InputError
from isthmus.support import durable

USAGES = {"serverAuth": ExtendedKeyUsageOID.SERVER_AUTH, "clientAuth": ExtendedKeyUsageOID.CLIENT_AUTH}
_SIGNS = x509.KeyUsage(False, False, False, False, False, True, True, False, False)
# What a host may ask for; whatever else a request has is left out.
_GRANTED = (x509.KeyUsage, x509.ExtendedKeyUsage, x509.SubjectAlternativeName)


def make(files: str, name: str, usages: Iterable[str], days: int) -> None:
    """Make an authority, or renew its certificate with the key it has: what it has signed stays believed.

    Args:
        files: path of key and certificate, without `.key` and `.crt`; its folder is made, for its owner alone.
        name: its common name.
        usages: to which it is limited; none for all.
        days: that the certificate lasts.

    Raises:
        InputError: its key cannot be read.
        OSError: a file cannot be written.
    """
    key_file = Path(f"{files}.key")
    key_file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not key_file.exists():
        made = ec.generate_private_key(ec.SECP384R1())
        text = made.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
        durable.write(key_file, text, 0o600)
    key, subject = _key(str(key_file)), _subject(Path(f"{files}.crt"), name)
    builder = _builder(subject, subject, key.public_key(), datetime.now(UTC) + timedelta(days=days))
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    builder = builder.add_extension(_SIGNS, critical=True)
    if wanted := [USAGES[usage] for usage in usages]:
        builder = builder.add_extension(x509.ExtendedKeyUsage(wanted), critical=False)
    durable.write(Path(f"{files}.crt"), _signed(builder, key))


def sign(request: str, certificate: str, key_file: str, days: int) -> str:
    """Return the certificate (PEM) that a host asked for.

    Args:
        request: PEM (RFC 2986).
        certificate: the authority's own, PEM.
        key_file: path of its key.
        days: that it lasts, at most as long as the authority's own.

    Raises:
        InputError: the request is none, or the key cannot be read.
    """
    try:
        asked = x509.load_pem_x509_csr(request.encode())
        valid = asked.is_signature_valid
    except ValueError:
        valid = False
    if not valid:
        raise InputError("the host gave no certificate request", "remove its key, and run this again")
    issuer, key = x509.load_pem_x509_certificate(certificate.encode()), _key(key_file)
    end = min(datetime.now(UTC) + timedelta(days=days), issuer.not_valid_after_utc)
    builder = _builder(asked.subject, issuer.subject, asked.public_key(), end)
    builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    for extension in asked.extensions:
        if isinstance(extension.value, _GRANTED):
            builder = builder.add_extension(extension.value, critical=extension.critical)
    return _signed(builder, key)


def _builder(
    subject: x509.Name, issuer: x509.Name, public: CertificatePublicKeyTypes, end: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(datetime.now(UTC) - timedelta(minutes=5))  # clocks differ
        .not_valid_after(end)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
    )


def _signed(builder: x509.CertificateBuilder, key: ec.EllipticCurvePrivateKey) -> str:
    by = x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key())
    made = builder.add_extension(by, critical=False).sign(key, SHA256())
    return made.public_bytes(Encoding.PEM).decode()


def _subject(certificate: Path, name: str) -> x509.Name:
    # Whoever checks a certificate looks for its issuer by this name, to the letter.
    try:
        return x509.load_pem_x509_certificate(certificate.read_bytes()).subject
    except (OSError, ValueError):
        names = ((NameOID.ORGANIZATION_NAME, "Isthmus"), (NameOID.COMMON_NAME, name))
        return x509.Name([x509.NameAttribute(oid, value) for oid, value in names])


def _key(file: str) -> ec.EllipticCurvePrivateKey:
    try:
        key = load_pem_private_key(Path(file).read_bytes(), None)
    except (OSError, ValueError, TypeError) as error:
        raise InputError(f"{file} holds no key: {error}", "bring it back from a backup of the deployer") from error
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise InputError(f"{file} holds a key of another kind", "bring back the cluster's own from a backup")
    return key
