"""A node's key and certificate, and the authority that signs it.

The authority of nodes is not the cluster's CA, whose key never leaves the deployer: etcd alone believes it, and for
clients alone (role ca). The certificate is the same as role ca gives: no name, for etcd would take it for a user's.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256

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

REQUEST_BYTES = 4096
# Clocks of nodes that have just booted may be slow.
_SLOW = timedelta(hours=1)
_USAGE = x509.KeyUsage(True, False, False, False, False, False, False, False, False)


class CertificateError(Exception):
    """What was given is no key, request or certificate of the wanted kind."""


@dataclass(frozen=True, slots=True)
class Authority:
    """Who signs, PEM both."""

    key: bytes
    certificate: bytes


def make_key() -> bytes:
    """A new key, PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    return key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())


def request(key: bytes) -> bytes:
    """Ask for a certificate of a key (PEM); it proves that the key is one's own."""
    own = _private(key)
    return x509.CertificateSigningRequestBuilder().subject_name(x509.Name([])).sign(own, SHA256()).public_bytes(_PEM)


def requested(text: bytes) -> x509.CertificateSigningRequest:
    """Read a request that anybody may have sent.

    Raises:
        CertificateError: it is none, or not that of an owner of a P-256 key.
    """
    if len(text) > REQUEST_BYTES:
        raise CertificateError(f"a request of more than {REQUEST_BYTES} bytes")
    try:
        found = x509.load_pem_x509_csr(text)
        public = found.public_key()
        if not isinstance(public, ec.EllipticCurvePublicKey) or not isinstance(public.curve, ec.SECP256R1):
            raise CertificateError("a request for a key that is not P-256")
        if not found.is_signature_valid:
            raise CertificateError("a request that its key has not signed")
    except CertificateError:
        raise
    except Exception as error:  # the parser is Rust's, and what it raises for hostile bytes is no closed set
        raise CertificateError("no certificate request") from error
    return found


def key_id(asked: x509.CertificateSigningRequest) -> str:
    """The hash of the key that a request is for."""
    return _public_id(asked.public_key())


def sign(asked: x509.CertificateSigningRequest, authority: Authority, organization: str, days: int) -> bytes:
    """Sign a node's key, and nothing else that it may have asked for."""
    issuer = x509.load_pem_x509_certificate(authority.certificate)
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization)]))
        .issuer_name(issuer.subject)
        .public_key(asked.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _SLOW)
        .not_valid_after(min(now + timedelta(days=days), issuer.not_valid_after_utc))
        .add_extension(_USAGE, critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
    )
    return builder.sign(_private(authority.key), SHA256()).public_bytes(_PEM)


def is_kept(certificate: bytes, key: bytes, days: int) -> bool:
    """Return whether a node's certificate is its key's and lasts for some days more."""
    try:
        found, own = x509.load_pem_x509_certificate(certificate), _private(key)
    except (ValueError, CertificateError):
        return False
    lasts = found.not_valid_after_utc - datetime.now(UTC)
    return _public_id(found.public_key()) == _public_id(own.public_key()) and lasts > timedelta(days=days)


def pin(certificate: bytes) -> str:
    """The hash of an authority's public key, which a renewed certificate of it has too.

    Raises:
        CertificateError: it is no certificate that its own key has signed.
    """
    try:
        found = x509.load_pem_x509_certificate(certificate)
        found.verify_directly_issued_by(found)
    except (ValueError, TypeError, InvalidSignature) as error:
        raise CertificateError("no certificate of an authority") from error
    return _public_id(found.public_key())


def _public_id(public: object) -> str:
    described = public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)  # type: ignore[attr-defined]
    return sha256(described).hexdigest()


def _private(key: bytes) -> ec.EllipticCurvePrivateKey:
    try:
        own = load_pem_private_key(key, None)
    except (ValueError, TypeError) as error:
        raise CertificateError("no private key") from error
    if not isinstance(own, ec.EllipticCurvePrivateKey):
        raise CertificateError("a key of another kind")
    return own


_PEM = Encoding.PEM
