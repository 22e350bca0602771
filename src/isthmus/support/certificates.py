"""X.509 in one place: keys, authorities, what they sign, and when that is due again.

All keys are on NIST's curves, all signatures SHA-256. Every certificate has the identifiers of its own key and its
issuer's (Python's ssl asks for the latter from 3.13 on), begins a little before its making, as clocks differ, and ends
no later than its issuer. What is signed for others says all that it may be used for: nothing is taken over from who
asks but what the caller names.

What a program makes of this (whose names, for how long, in which files) is the program's: the deployer's CA, the
authorities of a user's control plane, the channel of pods, nodes that join, the registry's tokens.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from hashlib import sha256

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.types import CertificatePublicKeyTypes
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

Certificate = x509.Certificate
PrivateKey = ec.EllipticCurvePrivateKey
# The clock of a node that has just booted may be slow.
EARLIER = timedelta(hours=1)
_SIGNS = x509.KeyUsage(False, False, False, False, False, True, True, False, False)
_AUTHENTICATES = x509.KeyUsage(True, False, False, False, False, False, False, False, False)
_Extension = tuple[x509.ExtensionType, bool]


class Usage(StrEnum):
    """What a certificate may be used for (RFC 5280, 4.2.1.12), by OpenSSL's names."""

    SERVER = "serverAuth"
    CLIENT = "clientAuth"

    @property
    def oid(self) -> x509.ObjectIdentifier:
        """The identifier."""
        return ExtendedKeyUsageOID.SERVER_AUTH if self is Usage.SERVER else ExtendedKeyUsageOID.CLIENT_AUTH


@dataclass(frozen=True, slots=True)
class Issuer:
    """Who signs."""

    certificate: Certificate
    key: PrivateKey

    @classmethod
    def of(cls, certificate: bytes, key: bytes) -> Issuer:
        """Read both, PEM; of several certificates the first signs.

        Raises:
            ValueError: one of them is none.
            TypeError: the key is of another kind.
        """
        return cls(x509.load_pem_x509_certificate(certificate), read_key(key))


@dataclass(frozen=True, slots=True)
class Subject:
    """What a certificate says of its owner.

    Attributes:
        name: by `name`.
        usages: what it may be used for.
        alternatives: names and addresses of a server.
    """

    name: x509.Name
    usages: Sequence[Usage] = ()
    alternatives: Sequence[x509.GeneralName] = ()


def new_key(curve: ec.EllipticCurve | None = None) -> PrivateKey:
    """Make a key, without a curve on P-256."""
    return ec.generate_private_key(curve or ec.SECP256R1())


def read_key(pem: bytes) -> PrivateKey:
    """Read a private key.

    Raises:
        ValueError: it is none.
        TypeError: it is of another kind, or has a password.
    """
    key = load_pem_private_key(pem, None)
    if not isinstance(key, PrivateKey):
        raise TypeError("it is no EC key")
    return key


def key_pem(key: PrivateKey, form: PrivateFormat = PrivateFormat.PKCS8) -> str:
    """Return a private key as PEM, without a password: files of keys are 0600."""
    return key.private_bytes(Encoding.PEM, form, NoEncryption()).decode()


def public_pem(key: CertificatePublicKeyTypes) -> str:
    """Return a public key as PEM."""
    return key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()


def fingerprint(key: CertificatePublicKeyTypes) -> str:
    """Return the SHA-256 of a public key, which a renewed certificate of it has too."""
    return sha256(key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)).hexdigest()


def pem(certificates: Iterable[Certificate]) -> str:
    """Return certificates as PEM, one after the other."""
    return "".join(each.public_bytes(Encoding.PEM).decode() for each in certificates)


def name(common_name: str = "", organizations: Sequence[str] = ()) -> x509.Name:
    """Return a name; to Kubernetes, organizations are groups."""
    parts = [(NameOID.ORGANIZATION_NAME, each) for each in organizations]
    parts += [(NameOID.COMMON_NAME, common_name)] if common_name else []
    return x509.Name([x509.NameAttribute(oid, value) for oid, value in parts])


def authority(
    subject: Subject, key: PrivateKey, lifetime: timedelta, now: datetime | None = None, path_length: int | None = 0
) -> Certificate:
    """Make the certificate of an authority, signed by itself.

    Args:
        subject: its name; with usages it is limited to these.
        key: its own.
        lifetime: from now on.
        now: when that is.
        path_length: how many authorities may be below it.
    """
    extensions: list[_Extension] = [(x509.BasicConstraints(ca=True, path_length=path_length), True), (_SIGNS, True)]
    begin = now or datetime.now(UTC)
    return _signed(
        key.public_key(), subject.name, subject.name, key, (begin, begin + lifetime), [*extensions, *_of(subject)]
    )


def leaf(
    subject: Subject,
    key: CertificatePublicKeyTypes,
    issuer: Issuer,
    lifetime: timedelta,
    now: datetime | None = None,
) -> Certificate:
    """Sign a certificate that signs nothing itself.

    Args:
        subject: what it says.
        key: of its owner.
        issuer: signs.
        lifetime: from now on; at most the issuer's.
        now: when that is.
    """
    return _leaf(subject.name, key, issuer, lifetime, now, [(_AUTHENTICATES, True), *_of(subject)])


def grant(
    request: x509.CertificateSigningRequest,
    granted: tuple[type[x509.ExtensionType], ...],
    issuer: Issuer,
    lifetime: timedelta,
) -> Certificate:
    """Sign what was asked for: name, key, and those extensions that are granted; all others are left out.

    Args:
        request: whose signature was checked.
        granted: kinds of extensions.
        issuer: signs.
        lifetime: from now on; at most the issuer's.
    """
    extensions = [(each.value, each.critical) for each in request.extensions if isinstance(each.value, granted)]
    return _leaf(request.subject, request.public_key(), issuer, lifetime, None, extensions)


def self_signed(subject: x509.Name, key: PrivateKey, lifetime: timedelta) -> Certificate:
    """Make a certificate that is trusted for its key alone; it signs nothing."""
    now = datetime.now(UTC)
    constraints = x509.BasicConstraints(ca=False, path_length=None)
    return _signed(key.public_key(), subject, subject, key, (now, now + lifetime), [(constraints, True)])


def is_signed_by(certificate: Certificate, issuer: Certificate) -> bool:
    """Return whether an authority has signed a certificate."""
    try:
        certificate.verify_directly_issued_by(issuer)
    except (InvalidSignature, ValueError, TypeError):
        return False
    return True


def is_due(certificate: Certificate, issuer: Certificate, left: timedelta, now: datetime) -> bool:
    """Return whether it is time for another: the issuer signs no more, or less than `left` is left of it.

    One that ends with its issuer is not due: another could not last longer.
    """
    end = certificate.not_valid_after_utc
    ends_soon = end - now <= left and end < issuer.not_valid_after_utc
    return ends_soon or not is_signed_by(certificate, issuer)


def alternatives(certificate: Certificate) -> list[x509.GeneralName]:
    """Return the names and addresses of a server's certificate."""
    try:
        return list(certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value)
    except x509.ExtensionNotFound:
        return []


def _of(subject: Subject) -> list[_Extension]:
    extensions: list[_Extension] = []
    if subject.usages:
        extensions.append((x509.ExtendedKeyUsage([usage.oid for usage in subject.usages]), False))
    if subject.alternatives:
        extensions.append((x509.SubjectAlternativeName(subject.alternatives), False))
    return extensions


def _leaf(
    subject: x509.Name,
    key: CertificatePublicKeyTypes,
    issuer: Issuer,
    lifetime: timedelta,
    now: datetime | None,
    extensions: Iterable[_Extension],
) -> Certificate:
    begin = now or datetime.now(UTC)
    validity = begin, min(begin + lifetime, issuer.certificate.not_valid_after_utc)
    constraints = x509.BasicConstraints(ca=False, path_length=None)
    return _signed(key, subject, issuer.certificate.subject, issuer.key, validity, [(constraints, True), *extensions])


def _signed(
    key: CertificatePublicKeyTypes,
    subject: x509.Name,
    issuer: x509.Name,
    issuer_key: PrivateKey,
    validity: tuple[datetime, datetime],
    extensions: Iterable[_Extension],
) -> Certificate:
    begin, end = validity
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(begin - EARLIER)
        .not_valid_after(end)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()), critical=False)
    )
    for extension, critical in extensions:
        builder = builder.add_extension(extension, critical=critical)
    return builder.sign(issuer_key, SHA256())
