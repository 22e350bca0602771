"""The cluster's CA: whether hosts trust this deployer's, and whether a certificate is still valid.

The CA's key is on the deployer alone. A deployer that lost it must not create a second one silently: hosts, daemons and
users would go on to trust certificates of the first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from cryptography import x509
from cryptography.x509 import (
    Certificate,
    CertificateSigningRequest,
    load_pem_x509_certificate,
    load_pem_x509_certificates,
    load_pem_x509_csr,
)
from cryptography.x509.oid import NameOID

from isthmus.filters.errors import InputError
from isthmus.support import certificates
from isthmus.support.certificates import Usage


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
    """Return the whole days until a certificate (PEM) expires, 0 for none and for an expired one.

    Raises:
        InputError: for a certificate that cannot be read.
    """
    if not certificate.strip():
        return 0
    return max(0, (_read(certificate).not_valid_after_utc - datetime.now(UTC)).days)


def ca_certificate_fits(state: Mapping[str, Any], authorities: str, wanted: Mapping[str, Any], days: int) -> bool:
    """Return whether a host's certificate can stay as it is.

    Args:
        state: of the host, as module `ca_request` returns it: kept, public_key, certificate (PEM).
        authorities: certificates (PEM) of which one must have issued it, "" for none.
        wanted: common_name ("" for none), organization, names (`DNS:ctl`, `IP:192.0.2.10`), usages.
        days: that it must still be valid.
    """
    if not state["kept"] or not authorities.strip():
        return False
    try:
        certificate, issuers = _read(state["certificate"]), load_pem_x509_certificates(authorities.encode())
    except (InputError, ValueError):
        return False
    return (
        any(certificates.is_signed_by(certificate, issuer) for issuer in issuers)
        and _public_key(state["certificate"]) == state["public_key"].strip()
        and ca_days_left(state["certificate"]) >= days
        and _described(certificate) == _desired(wanted)
    )


def ca_request_is_as_wanted(request: str, wanted: Mapping[str, Any]) -> bool:
    """Return whether a host asks for the certificate that its role gives it, and for no other name or use.

    Requests are made on the hosts: one that somebody else has taken over could ask to be another.

    Args:
        request: PEM.
        wanted: as for `ca_certificate_fits`.
    """
    try:
        return _described(load_pem_x509_csr(request.encode())) == _desired(wanted)
    except ValueError:
        return False


def _described(certificate: Certificate | CertificateSigningRequest) -> dict[str, object]:
    extensions = {extension.oid: extension.value for extension in certificate.extensions}
    alternative = extensions.get(x509.SubjectAlternativeName.oid, [])
    return {
        "subject": {(each.oid, each.value) for each in certificate.subject},
        "names": {f"{'IP' if isinstance(name, x509.IPAddress) else 'DNS'}:{name.value}" for name in alternative},
        "usages": set(extensions.get(x509.ExtendedKeyUsage.oid, [])),
        "signs": getattr(extensions.get(x509.KeyUsage.oid), "digital_signature", False),
    }


def _desired(wanted: Mapping[str, Any]) -> dict[str, object]:
    subject = {(NameOID.ORGANIZATION_NAME, wanted["organization"]), (NameOID.COMMON_NAME, wanted["common_name"])}
    return {
        "subject": {(oid, value) for oid, value in subject if value},
        "names": set(wanted["names"]),
        "usages": {Usage(usage).oid for usage in wanted["usages"]},
        "signs": True,
    }


def _public_key(certificate: str) -> str:
    return certificates.public_pem(_read(certificate).public_key()).strip()


def _read(certificate: str) -> Certificate:
    try:
        return load_pem_x509_certificate(certificate.encode())
    except ValueError as error:
        raise InputError("ca.crt holds no certificate", "restore it, or copy it from another host") from error


FILTERS: dict[str, Callable[..., object]] = {
    "ca_days_left": ca_days_left,
    "ca_problems": ca_problems,
}
