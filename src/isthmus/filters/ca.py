"""The cluster's CA: whether a host that trusts one trusts this deployer's.

The CA's key is on the deployer alone. A deployer that lost it must not make a second one quietly: hosts,
daemons and users would believe certificates of the first.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from cryptography.x509 import Certificate, load_pem_x509_certificate

from isthmus.filters.errors import InputError


def ca_problems(on_host: str, on_deployer: str, key: str) -> list[str]:
    """Compare the CA a host trusts with the deployer's; a renewed one has the same key and is the same.

    Args:
        on_host: /etc/isthmus/ca.crt (PEM), "" where there is none.
        on_deployer: the deployer's ca.crt (PEM), "" when it has none.
        key: where the deployer keeps the CA's key, for the message.

    Returns:
        At most one problem with its remedy; empty when the deployer may go on.

    Raises:
        InputError: for a certificate that cannot be read.
    """
    if not on_host.strip():
        return []
    if on_deployer.strip() and _public_key(on_host) == _public_key(on_deployer):
        return []
    lack = "is another's than" if on_deployer.strip() else "has no key on this deployer at"
    return [
        f"the CA in /etc/isthmus/ca.crt {lack} {key}; bring the folder back from where the cluster was deployed, or,"
        " to begin with a new CA, remove /etc/isthmus/ca.crt on every host and run site.yml"
    ]


def ca_days_left(certificate: str) -> int:
    """Whole days that a certificate (PEM) lasts from now, 0 for none and for one that has ended.

    Raises:
        InputError: for a certificate that cannot be read.
    """
    if not certificate.strip():
        return 0
    return max(0, (_read(certificate).not_valid_after_utc - datetime.now(UTC)).days)


def _public_key(certificate: str) -> bytes:
    return _read(certificate).public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)


def _read(certificate: str) -> Certificate:
    try:
        return load_pem_x509_certificate(certificate.encode())
    except ValueError as error:
        raise InputError("ca.crt holds no certificate", "bring it back from a backup, or from another host") from error


FILTERS: dict[str, Callable[..., object]] = {"ca_days_left": ca_days_left, "ca_problems": ca_problems}
