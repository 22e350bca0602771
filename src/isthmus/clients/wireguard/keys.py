"""Keys of WireGuard: X25519 (RFC 7748)."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A node's.

    Attributes:
        private: 32 bytes; for the device alone, and shown nowhere.
        public: base64.
    """

    private: bytes = field(repr=False)
    public: str


def new_pair() -> KeyPair:
    """Make a key pair."""
    private = X25519PrivateKey.generate().private_bytes_raw()
    return KeyPair(private, public_key(private))


def public_key(private: bytes) -> str:
    """Return the public key of a private one."""
    return base64.b64encode(X25519PrivateKey.from_private_bytes(private).public_key().public_bytes_raw()).decode()
