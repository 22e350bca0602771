"""Who a node is: a key of its own, and the certificate that the cluster's CA has given it by name and address."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from ipaddress import IPv4Address
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.x509.oid import ExtendedKeyUsageOID

from isthmus.model.networks.wireguard import identity
from isthmus.support import certificates
from isthmus.support.certificates import Certificate, PrivateKey

# What is signed here is nothing else's.
_CONTEXT = b"isthmus wireguard 1\n"


class IdentityError(ValueError):
    """A statement is not that of the node it names; the message says why."""


@dataclass(frozen=True, slots=True)
class Identity:
    """A node's own.

    Attributes:
        certificate: PEM.
        key: signs.
    """

    certificate: str
    key: PrivateKey = field(repr=False)

    @classmethod
    def read(cls, certificate: Path, key: Path) -> Identity:
        """Read both.

        Raises:
            OSError: a file cannot be read.
            ValueError: a file holds something else.
            TypeError: the key is of another kind.
        """
        return cls(certificate.read_text(encoding="ascii"), certificates.read_key(key.read_bytes()))

    def sign(self, statement: str) -> str:
        """Return the signature of a statement, base64."""
        signature = self.key.sign(_CONTEXT + statement.encode(), ec.ECDSA(SHA256()))
        return base64.b64encode(signature).decode()


@dataclass(frozen=True, slots=True)
class Authorities:
    """Who may say who a node is.

    Attributes:
        certificates: of the CA.
    """

    certificates: tuple[Certificate, ...]

    @classmethod
    def read(cls, path: Path) -> Authorities:
        """Read them, PEM.

        Raises:
            OSError: the file cannot be read.
            ValueError: it holds something else.
        """
        return cls(tuple(x509.load_pem_x509_certificates(path.read_bytes())))

    def verify(self, node: str, address: IPv4Address, statement: str, certificate: str, signature: str) -> datetime:
        """Return until when a statement is a node's.

        Args:
            node: who is said to state it.
            address: the node's, as it states.
            statement: what is signed.
            certificate: of the signer, PEM.
            signature: base64.

        Raises:
            IdentityError: the node did not state it.
        """
        try:
            found = x509.load_pem_x509_certificate(certificate.encode())
            self._check(found, node, address)
            _check_signature(found, statement, base64.b64decode(signature, validate=True))
            return found.not_valid_after_utc
        except IdentityError:
            raise
        except Exception as error:  # the parser is Rust's, and what it raises for hostile bytes is no closed set
            raise IdentityError("its certificate or signature cannot be read") from error

    def _check(self, certificate: Certificate, node: str, address: IPv4Address) -> None:
        if not any(certificates.is_signed_by(certificate, each) for each in self.certificates):
            raise IdentityError("its certificate is not of this cluster's CA")
        now = datetime.now(UTC)
        if not certificate.not_valid_before_utc <= now <= certificate.not_valid_after_utc:
            raise IdentityError("its certificate is out of date; run playbooks/renew_certificates.yml")
        usages = _extension(certificate, x509.ExtendedKeyUsage)
        if usages is None or ExtendedKeyUsageOID.CLIENT_AUTH not in usages:
            raise IdentityError("its certificate is for another use")
        named = certificates.alternatives(certificate)
        if not _holds(named, x509.DNSName, identity(node)):
            raise IdentityError("its certificate is another node's")
        if not _holds(named, x509.IPAddress, address):
            raise IdentityError(f"its certificate does not have the address {address}; run playbooks/network.yml there")


def _check_signature(certificate: Certificate, statement: str, signature: bytes) -> None:
    public = certificate.public_key()
    if not isinstance(public, ec.EllipticCurvePublicKey):
        raise IdentityError("its certificate's key is on no curve")
    try:
        public.verify(signature, _CONTEXT + statement.encode(), ec.ECDSA(SHA256()))
    except InvalidSignature as error:
        raise IdentityError("it is not signed by the key of its certificate") from error


def _extension(certificate: Certificate, kind: type[x509.ExtendedKeyUsage]) -> x509.ExtendedKeyUsage | None:
    try:
        return certificate.extensions.get_extension_for_class(kind).value
    except (x509.ExtensionNotFound, ValueError):
        return None


def _holds(names: Iterable[x509.GeneralName], kind: type[x509.GeneralName], value: object) -> bool:
    return any(isinstance(name, kind) and name.value == value for name in names)
