"""Certificates and keys as files: PEM, 0600, each whole or not there; and what every certificate here has."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import NameOID

from isthmus.support import durable

# Of what authorities sign.
LIFE = timedelta(days=365)
# Renewed when less is left: a cluster that is down over the summer still starts by itself.
RENEWAL = timedelta(days=120)
# Clocks of nodes differ.
EARLIER = timedelta(minutes=5)


def read(path: Path) -> list[x509.Certificate]:
    """Return the certificates of a file, at least one.

    Raises:
        FileNotFoundError: there is none.
        ValueError: it holds something else.
    """
    return x509.load_pem_x509_certificates(path.read_bytes())


def write(path: Path, certificates: Iterable[x509.Certificate]) -> None:
    """Write certificates, unless these are there already."""
    content = b"".join(each.public_bytes(Encoding.PEM) for each in certificates)
    if not path.exists() or path.read_bytes() != content:
        durable.write(path, content.decode(), 0o600)


def new_key() -> ec.EllipticCurvePrivateKey:
    """Make a key."""
    return ec.generate_private_key(ec.SECP256R1())


def read_key(path: Path) -> ec.EllipticCurvePrivateKey:
    """Return the key of a file.

    Raises:
        FileNotFoundError: there is none.
        TypeError: it is of another kind.
        ValueError: it is no key.
    """
    key = load_pem_private_key(path.read_bytes(), password=None)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise TypeError(f"{path} is no EC key")
    return key


def write_key(path: Path, key: ec.EllipticCurvePrivateKey) -> None:
    """Write a private key."""
    text = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    durable.write(path, text, 0o600)


def builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, now: datetime, end: datetime
) -> x509.CertificateBuilder:
    """Begin a certificate."""
    begun = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key.public_key())
    begun = begun.serial_number(x509.random_serial_number())
    return begun.not_valid_before(now - EARLIER).not_valid_after(end)


def subject(user: str, groups: Sequence[str] = ()) -> x509.Name:
    """Return whom a certificate names: to Kubernetes, organizations are groups."""
    group_names = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    return x509.Name([*group_names, x509.NameAttribute(NameOID.COMMON_NAME, user)])
