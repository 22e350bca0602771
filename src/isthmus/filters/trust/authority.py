"""The deployer's certificate authorities, and the certificates that they issue to hosts.

Keys of authorities are generated on the deployer and stay there; those of hosts are generated on the hosts, which send
certificate requests.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec

from isthmus.filters.errors import InputError
from isthmus.support import certificates, durable
from isthmus.support.certificates import Issuer, PrivateKey, Subject, Usage

# Extensions that a host may request; others are ignored.
_GRANTED = (x509.KeyUsage, x509.ExtendedKeyUsage, x509.SubjectAlternativeName)


def make(files: str, name: str, usages: Iterable[str], days: int) -> None:
    """Create an authority, or renew its certificate with the same key: what it has signed stays valid.

    Args:
        files: path of key and certificate, without `.key` and `.crt`; its folder is created with mode 0700.
        name: its common name.
        usages: to which it is limited; empty for all.
        days: validity of the certificate.

    Raises:
        InputError: its key cannot be read.
        OSError: a file cannot be written.
    """
    key_file = Path(f"{files}.key")
    key_file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not key_file.exists():
        durable.write(key_file, certificates.key_pem(certificates.new_key(ec.SECP384R1())), 0o600)
    subject = Subject(_name(Path(f"{files}.crt"), name), [*map(Usage, usages)])
    made = certificates.authority(subject, _key(str(key_file)), timedelta(days=days))
    durable.write(Path(f"{files}.crt"), certificates.pem([made]))


def sign(request: str, certificate: str, key_file: str, days: int) -> str:
    """Return the certificate (PEM) for a host's request.

    Args:
        request: PEM (RFC 2986).
        certificate: the authority's own, PEM.
        key_file: path of its key.
        days: its validity, at most as long as the authority's own.

    Raises:
        InputError: the request is invalid, or the key cannot be read.
    """
    try:
        asked = x509.load_pem_x509_csr(request.encode())
        valid = asked.is_signature_valid
    except ValueError:
        valid = False
    if not valid:
        raise InputError("the host gave no certificate request", "remove its key, and run this again")
    issuer = Issuer(x509.load_pem_x509_certificate(certificate.encode()), _key(key_file))
    return certificates.pem([certificates.grant(asked, _GRANTED, issuer, timedelta(days=days))])


def _name(certificate: Path, name: str) -> x509.Name:
    # Verifiers find the issuer by this name, byte for byte.
    try:
        return x509.load_pem_x509_certificate(certificate.read_bytes()).subject
    except (OSError, ValueError):
        return certificates.name(name, ["Isthmus"])


def _key(file: str) -> PrivateKey:
    try:
        return certificates.read_key(Path(file).read_bytes())
    except TypeError as error:
        raise InputError(f"{file} holds a key of another kind", "restore the cluster's own from a backup") from error
    except (OSError, ValueError) as error:
        raise InputError(f"{file} holds no key: {error}", "restore it from a backup of the deployer") from error
