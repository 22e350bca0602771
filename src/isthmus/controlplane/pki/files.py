"""Certificates and keys as files: PEM, 0600, each whole or not there; and how long they live."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path

from cryptography.x509 import Certificate, load_pem_x509_certificates

from isthmus.support import certificates, durable
from isthmus.support.certificates import PrivateKey

# Of what authorities sign.
LIFE = timedelta(days=365)
# Renewed when less is left: a cluster that is down over the summer still starts by itself.
RENEWAL = timedelta(days=120)


def read(path: Path) -> list[Certificate]:
    """Return the certificates of a file, at least one.

    Raises:
        FileNotFoundError: there is none.
        ValueError: it holds something else.
    """
    return load_pem_x509_certificates(path.read_bytes())


def write(path: Path, found: Iterable[Certificate]) -> None:
    """Write certificates, unless these are there already."""
    content = certificates.pem(found)
    if not path.exists() or path.read_bytes() != content.encode():
        durable.write(path, content, 0o600)


def read_key(path: Path) -> PrivateKey:
    """Return the key of a file.

    Raises:
        FileNotFoundError: there is none.
        TypeError: it is of another kind.
        ValueError: it is no key.
    """
    return certificates.read_key(path.read_bytes())


def write_key(path: Path, key: PrivateKey) -> None:
    """Write a private key."""
    durable.write(path, certificates.key_pem(key), 0o600)
