"""The joining node's HTTPS client of the controller, which must prove to be the token's.

A node of the image trusts no CA yet. It gets the CA's certificate without verification, compares the hash of its
key to the one in the token, and only then speaks again, believing that CA alone. So nobody in between learns the token.
"""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from typing import BinaryIO

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from isthmus.clients import http
from isthmus.node import certificates
from isthmus.node.certificates import CertificateError
from isthmus.node.errors import JoinError, RefusedError
from isthmus.node.manifest import Manifest, ManifestError, of
from isthmus.node.messages import (
    ANSWER_BYTES,
    CA_PATH,
    FILE_PATH,
    JOIN_PATH,
    MessageError,
    Request,
    context,
    decoded,
    encoded,
)
from isthmus.node.seal import SealError, unseal
from isthmus.node.tokens import Token
from isthmus.support.aio import aiohttp

_CA_BYTES = 16 << 10
_PIECE = 1 << 20
_TIME = aiohttp.ClientTimeout(total=30, sock_connect=10)
_FILE_TIME = aiohttp.ClientTimeout(total=900, sock_connect=10, sock_read=30)


@dataclass(frozen=True, slots=True)
class Asking:
    """What a node says of itself.

    Attributes:
        name: that it will have.
        release: of its Isthmus.
        key: its private key, PEM.
        token: None for a node that has joined before.
    """

    name: str
    release: str
    key: bytes
    token: Token | None


@dataclass(frozen=True, slots=True)
class Answer:
    """What it gets.

    Attributes:
        manifest: with itself as the only node.
        certificate: PEM; empty where it only looked.
        ticket: for the large files.
    """

    manifest: Manifest
    certificate: bytes
    ticket: str


class Controller:
    """Speaks to the service.

    Args:
        server: `host:port`.
        pin: hash of the key of the CA that it must have.
    """

    def __init__(self, server: str, pin: str) -> None:
        self._url, self.server, self._pin = f"https://{server}", server, pin
        self._context: ssl.SSLContext | None = None

    def ask(self, asking: Asking, *, look: bool) -> Answer:
        """Ask to be let in, or with `look` what that would be.

        Raises:
            RefusedError: the controller lets this node not in, or is another than the token's.
            JoinError: it does not answer as it should.
        """
        return asyncio.run(self._ask(asking, look))

    def fetch(self, digest: str, ticket: str, to: BinaryIO) -> None:
        """Get a file of the controller's, whole.

        Raises:
            JoinError: it was not given, or is another.
        """
        asyncio.run(self._fetch(digest, ticket, to))

    async def _ask(self, asking: Asking, look: bool) -> Answer:
        own = X25519PrivateKey.generate()
        request = certificates.request(asking.key)
        key = certificates.key_id(certificates.requested(request))
        token, secret = (asking.token.id, asking.token.secret) if asking.token else ("", "")
        public = encoded(own.public_key().public_bytes_raw())
        said = Request(asking.name, asking.release, token, secret, request.decode(), public, look)
        body = await self._get("POST", JOIN_PATH, await self._believing(), said.written(), ANSWER_BYTES)
        try:
            document = json.loads(unseal(decoded(json.loads(body)["sealed"]), own, context(asking.name, key)))
            return Answer(of(document["manifest"]), document["certificate"].encode(), document["ticket"])
        except (SealError, MessageError, ManifestError, ValueError, KeyError, TypeError) as error:
            raise JoinError(f"{self.server} gave an answer that cannot be read ({error}); look at its log") from error

    async def _believing(self) -> ssl.SSLContext:
        if self._context is None:
            anybody = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            anybody.check_hostname, anybody.verify_mode = False, ssl.CERT_NONE
            authority = await self._get("GET", CA_PATH, anybody, None, _CA_BYTES)
            try:
                found = certificates.pin(authority)
            except CertificateError as error:
                raise RefusedError(f"{self.server} is no controller that lets nodes join; check --server") from error
            if found != self._pin:
                raise RefusedError(
                    f"{self.server} belongs to another cluster than the token, or somebody is between; it was sent"
                    " nothing; check --server, or make a token there"
                )
            self._context = ssl.create_default_context(cadata=authority.decode())
        return self._context

    async def _get(self, method: str, path: str, context: ssl.SSLContext, body: bytes | None, largest: int) -> bytes:
        try:
            async with (
                aiohttp.ClientSession(timeout=_TIME) as session,
                session.request(method, self._url + path, data=body, ssl=context, allow_redirects=False) as answer,
            ):
                content = await http.read(answer, largest)
        except (aiohttp.ClientError, OSError, TimeoutError, ValueError) as error:
            raise self._unreachable(error) from error
        if answer.status != 200:
            raise self._refusal(answer.status, content)
        return content

    async def _fetch(self, digest: str, ticket: str, to: BinaryIO) -> None:
        context, whole = await self._believing(), sha256()
        headers = {"Authorization": f"Bearer {ticket}"}
        try:
            async with (
                aiohttp.ClientSession(timeout=_FILE_TIME) as session,
                session.get(f"{self._url}{FILE_PATH}{digest}", ssl=context, headers=headers) as answer,
            ):
                if answer.status != 200:
                    raise self._refusal(answer.status, await http.read(answer, _CA_BYTES))
                async for piece in answer.content.iter_chunked(_PIECE):
                    whole.update(piece)
                    to.write(piece)
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            raise self._unreachable(error) from error
        if whole.hexdigest() != digest:
            raise JoinError(f"{self.server} gave another file than it announced; try again")

    def _unreachable(self, error: Exception) -> JoinError:
        return JoinError(
            f"{self.server} cannot be spoken to ({http.reason(error)}); check --server, the network, this host's clock,"
            " and on the controller `systemctl status isthmus-joind`"
        )

    def _refusal(self, status: int, content: bytes) -> JoinError:
        try:
            words = str(json.loads(content)["error"])
        except (ValueError, KeyError, TypeError):
            words = f"status {status}"
        # Words of the controller's, but a terminal obeys what it is shown.
        shown = "".join(letter for letter in words if letter.isprintable())[:500]
        kind: Callable[[str], JoinError] = RefusedError if status == 403 else JoinError
        return kind(f"{self.server}: {shown}")
