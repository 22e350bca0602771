"""A node's key and certificate, and the authority that signs it.

The authority of nodes is not the cluster's CA, whose key never leaves the deployer: etcd alone trusts it, and for
clients alone (role ca). The certificate is the same as role ca gives: no name, for etcd would take it for a user's.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PrivateFormat

from isthmus.support import certificates
from isthmus.support.certificates import Issuer, PrivateKey, Subject, Usage

REQUEST_BYTES = 4096


class CertificateError(Exception):
    """What was given is no key, request or certificate of the wanted kind."""


@dataclass(frozen=True, slots=True)
class Authority:
    """Who signs, PEM both."""

    key: bytes
    certificate: bytes


def make_key() -> bytes:
    """A new key, PEM."""
    return certificates.key_pem(certificates.new_key(), PrivateFormat.TraditionalOpenSSL).encode()


def request(key: bytes) -> bytes:
    """Ask for a certificate of a key (PEM); it proves that the key is one's own."""
    asking = x509.CertificateSigningRequestBuilder().subject_name(certificates.name())
    return asking.sign(_private(key), SHA256()).public_bytes(Encoding.PEM)


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
    return certificates.fingerprint(asked.public_key())


def sign(asked: x509.CertificateSigningRequest, authority: Authority, organization: str, days: int) -> bytes:
    """Sign a node's key, and nothing else that it may have asked for."""
    issuer = Issuer(x509.load_pem_x509_certificate(authority.certificate), _private(authority.key))
    subject = Subject(certificates.name(organizations=[organization]), [Usage.CLIENT])
    return certificates.pem([certificates.leaf(subject, asked.public_key(), issuer, timedelta(days=days))]).encode()


def is_kept(certificate: bytes, key: bytes, days: int) -> bool:
    """Return whether a node's certificate is its key's and lasts for some days more."""
    try:
        found, own = x509.load_pem_x509_certificate(certificate), _private(key)
    except (ValueError, CertificateError):
        return False
    lasts = found.not_valid_after_utc - datetime.now(UTC)
    return found.public_key() == own.public_key() and lasts > timedelta(days=days)


def pin(certificate: bytes) -> str:
    """The hash of an authority's public key, which a renewed certificate of it has too.

    Raises:
        CertificateError: it is no certificate that its own key has signed.
    """
    try:
        found = x509.load_pem_x509_certificate(certificate)
    except ValueError as error:
        raise CertificateError("no certificate of an authority") from error
    if not certificates.is_signed_by(found, found):
        raise CertificateError("no certificate of an authority")
    return certificates.fingerprint(found.public_key())


def _private(key: bytes) -> PrivateKey:
    try:
        return certificates.read_key(key)
    except (ValueError, TypeError) as error:
        raise CertificateError("no private key on a curve") from error
