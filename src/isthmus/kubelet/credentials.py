"""Keys for the channel: one for the kubelet as its server, one for each pod as its client, all signed by pods-ca.

A pod's key opens the channel as that pod and nothing else: the API server does not know its CA, and its certificate
is for clients only. It lies 0600 in the pod's folder and goes with it.

pods-ca.crt may hold two authorities, while one succeeds the other: the first signs, both are believed by both sides.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from isthmus.support import durable

# The name in the server's certificate besides its address, which changes when the control plane moves.
SERVER_NAME = "isthmus-kubelet"
LIFETIME = timedelta(days=30)
# The server's is made anew at each start, and a start is rare.
SERVER_LIFETIME = timedelta(days=730)
# A clock that is a little behind shall not refuse a new key.
_SKEW = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class Credential:
    """A certificate and its key in PEM."""

    certificate: str
    key: str


class Authority:
    """The CA of the channel.

    Args:
        folder: has pods-ca.crt, what signs first, and pods-ca.key.

    Attributes:
        path: of all that is believed.
        certificate: what is there, PEM.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / "pods-ca.crt"
        self.certificate = self.path.read_text(encoding="utf-8")
        self._ca = x509.load_pem_x509_certificate(self.certificate.encode())
        key = load_pem_private_key((folder / "pods-ca.key").read_bytes(), None)
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise TypeError(f"{folder}/pods-ca.key is no EC key; remove the folder and run `isthmus up`")
        self._key = key

    def pod(self, uid: str) -> Credential:
        """Make a credential that opens the channel as this pod."""
        return self._sign(uid, ExtendedKeyUsageOID.CLIENT_AUTH, [], LIFETIME)

    def server(self, address: str) -> Credential:
        """Make the credential of the channel's server."""
        names = [x509.DNSName(SERVER_NAME), x509.IPAddress(ip_address(address))]
        return self._sign(SERVER_NAME, ExtendedKeyUsageOID.SERVER_AUTH, names, SERVER_LIFETIME)

    def is_due(self, certificate: str, now: datetime) -> bool:
        """Tell whether a pod needs another: half of its time is over, or what signed it signs no more."""
        found = x509.load_pem_x509_certificate(certificate.encode())
        try:
            found.verify_directly_issued_by(self._ca)
        except (ValueError, InvalidSignature):
            return True
        end, last = found.not_valid_after_utc, self._ca.not_valid_after_utc
        # One that ends with its authority cannot be made to last longer.
        return end - now < LIFETIME / 2 and end < last

    def _sign(
        self, name: str, usage: x509.ObjectIdentifier, names: list[x509.GeneralName], lifetime: timedelta
    ) -> Credential:
        key = ec.generate_private_key(ec.SECP256R1())
        now = datetime.now(UTC)
        end = min(now + lifetime, self._ca.not_valid_after_utc)
        builder = (
            x509.CertificateBuilder()
            .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
            .issuer_name(self._ca.subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - _SKEW)
            .not_valid_after(end)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.ExtendedKeyUsage([usage]), critical=True)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()),
                critical=False,
            )
        )
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        certificate = builder.sign(self._key, SHA256()).public_bytes(Encoding.PEM).decode()
        private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
        return Credential(certificate, private)


def server_context(authority: Authority, address: str, folder: Path) -> ssl.SSLContext:
    """Return TLS for the channel's server: 1.3, and only for clients with a certificate of the authority.

    Args:
        authority: signs both sides.
        address: where the server listens.
        folder: takes channel.crt and channel.key, as OpenSSL wants files.
    """
    made = authority.server(address)
    durable.write(folder / "channel.key", made.key, 0o600)
    durable.write(folder / "channel.crt", made.certificate, 0o600)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(authority.path))
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_cert_chain(folder / "channel.crt", folder / "channel.key")
    return context
