"""The signing key of tokens: made at the first start, readable by this account only.

The registry trusts the certificate beside it, which no authority has signed and which is good for nothing else.
"""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric import ec

from isthmus.support import certificates, durable
from isthmus.support.certificates import PrivateKey

_NAME = certificates.name("isthmus-tokend")
# The registry looks at the key alone.
_LIFETIME = timedelta(days=36500)


class KeyFileError(Exception):
    """The key cannot be used; the message has the remedy."""


def key(folder: Path) -> PrivateKey:
    """Return the key of `token.key` in a folder, made where there is none; `token.crt` is its certificate.

    Raises:
        KeyFileError: what is there is no key on the curve P-256.
        OSError: it cannot be read or written.
    """
    path, certificate = folder / "token.key", folder / "token.crt"
    if not path.exists():
        durable.write(path, certificates.key_pem(certificates.new_key()), 0o600)
        certificate.unlink(missing_ok=True)
    try:
        found = certificates.read_key(path.read_bytes())
    except (ValueError, TypeError) as error:
        raise KeyFileError(f"{path} is no key; remove it, and run playbooks/apptainer.yml") from error
    if not isinstance(found.curve, ec.SECP256R1):
        raise KeyFileError(f"{path} is no key on the curve P-256; remove it, and run playbooks/apptainer.yml")
    if not certificate.exists():
        durable.write(certificate, certificates.pem([certificates.self_signed(_NAME, found, _LIFETIME)]), 0o644)
    return found
