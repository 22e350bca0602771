"""Tokens of the registry: JSON Web Tokens of a few minutes, signed by ES256 (RFC 7515, RFC 7519).

The registry knows the key by its fingerprint and trusts no other; its claims are those of
https://distribution.github.io/distribution/spec/auth/jwt/. One algorithm and one key are all that is ever read here.
"""

from __future__ import annotations

import base64
import binascii
import json
import secrets
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from isthmus.registry.rights import Scope

ISSUER = "isthmus-tokend"
LIFETIME_S = 300
# The registry trusts a token for so long after its end; what it trusts must be known here.
LEEWAY_S = 60
_HALF = 32
_MOST = 16 << 10
_ALGORITHM = ec.ECDSA(hashes.SHA256())


class TokenError(Exception):
    """A token that is none of ours, or none any more."""


class Signer:
    """Makes tokens and reads them.

    Args:
        key: on the curve P-256.
        service: gives the audience: the registry's name of now.
    """

    def __init__(self, key: ec.EllipticCurvePrivateKey, service: Callable[[], str]) -> None:
        self._key, self._service = key, service
        self._header = _encoded({"typ": "JWT", "alg": "ES256", "kid": fingerprint(key.public_key())})

    def token(self, account: str, granted: Mapping[Scope, frozenset[str]], now_s: float) -> str:
        """Return a token for what an account was granted."""
        claims = {
            "iss": ISSUER,
            "sub": account,
            "aud": self._service(),
            "exp": int(now_s) + LIFETIME_S,
            "nbf": int(now_s) - LEEWAY_S,
            "iat": int(now_s),
            "jti": secrets.token_urlsafe(16),
            "access": [
                {"type": scope.kind, "name": scope.name, "actions": sorted(actions)}
                for scope, actions in granted.items()
                if actions
            ],
        }
        signed = f"{self._header}.{_encoded(claims)}"
        first, second = decode_dss_signature(self._key.sign(signed.encode(), _ALGORITHM))
        return f"{signed}.{_text(first.to_bytes(_HALF) + second.to_bytes(_HALF))}"

    def account(self, token: str, now_s: float) -> str:
        """Return whose token it is.

        Raises:
            TokenError: it is not of this key, for another service, or over for longer than the registry minds.
        """
        header, _, rest = token.partition(".")
        body, _, signature = rest.partition(".")
        # What this key signs begins so; whatever else a header could say is not even read.
        if len(token) > _MOST or header != self._header:
            raise TokenError("the token is not of this registry")
        raw = _bytes(signature)
        if len(raw) != 2 * _HALF:
            raise TokenError("the token's signature is none")
        halves = int.from_bytes(raw[:_HALF]), int.from_bytes(raw[_HALF:])
        try:
            self._key.public_key().verify(encode_dss_signature(*halves), f"{header}.{body}".encode(), _ALGORITHM)
        except InvalidSignature as error:
            raise TokenError("the token's signature is wrong") from error
        claims = json.loads(_bytes(body))
        if claims["aud"] != self._service() or claims["iss"] != ISSUER:
            raise TokenError("the token is for another registry")
        if now_s > claims["exp"] + LEEWAY_S:
            raise TokenError("the token is over")
        return str(claims["sub"])


def fingerprint(key: ec.EllipticCurvePublicKey) -> str:
    """Return a key's name as the registry has it: libtrust's, 240 bits of its SHA-256."""
    der = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    name = base64.b32encode(sha256(der).digest()[:30]).decode()
    return ":".join(name[start : start + 4] for start in range(0, len(name), 4))


def _encoded(content: Mapping[str, Any]) -> str:
    return _text(json.dumps(content, separators=(",", ":")).encode())


def _text(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def _bytes(text: str) -> bytes:
    try:
        return base64.b64decode(text.encode() + b"=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, UnicodeEncodeError) as error:
        raise TokenError("the token is no token") from error
