"""Certificates of the channel: one for the kubelet as server, one per pod as client, all signed by pods-ca.

A pod's key authenticates that pod on the channel and nowhere else: the API server does not trust its CA, and its
certificate is for clients only. It is kept with mode 0600 in the pod's folder and removed with it.

During a rotation pods-ca.crt holds two authorities: the first signs, both sides trust both.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from datetime import datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509

from isthmus.support import certificates, durable
from isthmus.support.certificates import Issuer, Subject, Usage

# The name in the server's certificate besides its address, which changes when the control plane moves.
SERVER_NAME = "isthmus-kubelet"
LIFETIME = timedelta(days=30)
# The server's certificate is issued at each start; starts are rare.
SERVER_LIFETIME = timedelta(days=730)


@dataclass(frozen=True, slots=True)
class Credential:
    """A certificate and its key in PEM."""

    certificate: str
    key: str


class Authority:
    """The CA of the channel.

    Args:
        folder: holds pods-ca.crt, the signing authority first, and pods-ca.key.

    Attributes:
        path: of the trusted certificates.
        certificate: the current one, PEM.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / "pods-ca.crt"
        self.certificate = self.path.read_text(encoding="utf-8")
        try:
            self._issuer = Issuer.of(self.certificate.encode(), (folder / "pods-ca.key").read_bytes())
        except (ValueError, TypeError) as error:
            raise TypeError(f"{folder}/pods-ca: {error}; remove the folder and run `isthmus up`") from error

    def pod(self, uid: str) -> Credential:
        """Issue the client credential of a pod."""
        return self._sign(Subject(certificates.name(uid), [Usage.CLIENT]), LIFETIME)

    def server(self, address: str) -> Credential:
        """Issue the server's credential."""
        names = [x509.DNSName(SERVER_NAME), x509.IPAddress(ip_address(address))]
        return self._sign(Subject(certificates.name(SERVER_NAME), [Usage.SERVER], names), SERVER_LIFETIME)

    def is_due(self, certificate: str, now: datetime) -> bool:
        """Return whether a certificate is due for renewal: half of its lifetime is over, or its issuer was replaced."""
        found = x509.load_pem_x509_certificate(certificate.encode())
        return certificates.is_due(found, self._issuer.certificate, LIFETIME / 2, now)

    def _sign(self, subject: Subject, lifetime: timedelta) -> Credential:
        key = certificates.new_key()
        made = certificates.leaf(subject, key.public_key(), self._issuer, lifetime)
        return Credential(certificates.pem([made]), certificates.key_pem(key))


def server_context(authority: Authority, address: str, folder: Path) -> ssl.SSLContext:
    """Return the server's TLS 1.3 context, which requires a client certificate of the authority.

    Args:
        authority: signs both sides.
        address: where the server listens.
        folder: where channel.crt and channel.key are written; OpenSSL reads files only.
    """
    made = authority.server(address)
    durable.write(folder / "channel.key", made.key, 0o600)
    durable.write(folder / "channel.crt", made.certificate, 0o600)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(authority.path))
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_cert_chain(folder / "channel.crt", folder / "channel.key")
    return context
