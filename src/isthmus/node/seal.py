"""Encryption of a response to a key that the node made for it.

TLS keeps the answer from the wire; the seal keeps it from whatever ends TLS between node and controller, and binds it
to the node that asked. X25519 with a new key on both sides gives one shared secret, HKDF-SHA256 a key of it that is
used once, ChaCha20-Poly1305 keeps and authenticates. `context` is what both sides must agree on.
"""

from __future__ import annotations

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

KEY_BYTES = 32
# Each key is used for one message.
_NONCE = bytes(12)


class SealError(Exception):
    """It was sealed to another key or for something else, or was changed on the way."""


def seal(content: bytes, to: bytes, context: bytes) -> bytes:
    """Seal to a public key.

    Raises:
        SealError: that is no key.
    """
    own = X25519PrivateKey.generate()
    public = own.public_key().public_bytes_raw()
    key = _key(own, to, public + to, context)
    return public + ChaCha20Poly1305(key).encrypt(_NONCE, content, context)


def unseal(sealed: bytes, own: X25519PrivateKey, context: bytes) -> bytes:
    """Read what was sealed to one's key.

    Raises:
        SealError: it cannot be read.
    """
    public = sealed[:KEY_BYTES]
    key = _key(own, public, public + own.public_key().public_bytes_raw(), context)
    try:
        return ChaCha20Poly1305(key).decrypt(_NONCE, sealed[KEY_BYTES:], context)
    except InvalidTag as error:
        raise SealError("it was not sealed to this node's key") from error


def _key(own: X25519PrivateKey, other: bytes, keys: bytes, context: bytes) -> bytes:
    try:
        shared = own.exchange(X25519PublicKey.from_public_bytes(other))
    except ValueError as error:  # of another length, or a point that gives no secret
        raise SealError("that is no X25519 key") from error
    return HKDF(SHA256(), KEY_BYTES, salt=None, info=b"isthmus join 1" + keys + context).derive(shared)
