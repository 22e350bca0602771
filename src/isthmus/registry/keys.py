"""The key of tokens: made here at the first start, and never leaves this account.

The registry believes the certificate beside it, which no authority has signed and which is good for nothing else.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key
from cryptography.x509.oid import NameOID

from isthmus.support import durable

_NAME = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "isthmus-tokend")])
# The registry looks at the key alone.
_LIFETIME = timedelta(days=36500)


class KeyFileError(Exception):
    """The key cannot be used; the message has the remedy."""


def key(folder: Path) -> ec.EllipticCurvePrivateKey:
    """Return the key of `token.key` in a folder, made where there is none; `token.crt` is its certificate.

    Raises:
        KeyFileError: what is there is no key on the curve P-256.
        OSError: it cannot be read or written.
    """
    path, certificate = folder / "token.key", folder / "token.crt"
    if not path.exists():
        made = ec.generate_private_key(ec.SECP256R1())
        durable.write(path, made.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode(), 0o600)
        certificate.unlink(missing_ok=True)
    try:
        found = load_pem_private_key(path.read_bytes(), None)
    except (ValueError, TypeError) as error:
        raise KeyFileError(f"{path} is no key; remove it, and run playbooks/apptainer.yml") from error
    if not isinstance(found, ec.EllipticCurvePrivateKey) or not isinstance(found.curve, ec.SECP256R1):
        raise KeyFileError(f"{path} is no key on the curve P-256; remove it, and run playbooks/apptainer.yml")
    if not certificate.exists():
        durable.write(certificate, _certificate(found), 0o644)
    return found


def _certificate(of: ec.EllipticCurvePrivateKey) -> str:
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(_NAME)
        .issuer_name(_NAME)
        .public_key(of.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + _LIFETIME)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    )
    return builder.sign(of, SHA256()).public_bytes(Encoding.PEM).decode()
