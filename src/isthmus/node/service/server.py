"""The service of the controller: answers nodes that ask to join, over HTTPS.

It reads its files again for each request: a new manifest, token or revocation counts at once, and a restart loses
nothing but tickets, with which a node that was just let in gets the large files.
"""

from __future__ import annotations

import asyncio
import json
import logging
import secrets
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from hashlib import file_digest
from pathlib import Path
from typing import Any

from isthmus.node import certificates
from isthmus.node.certificates import CertificateError
from isthmus.node.errors import JoinError
from isthmus.node.manifest import Manifest
from isthmus.node.messages import (
    CA_PATH,
    FILE_PATH,
    JOIN_PATH,
    REQUEST_BYTES,
    SCHEMA,
    MessageError,
    Request,
    context,
    decoded,
    encoded,
    read_request,
)
from isthmus.node.seal import SealError, seal
from isthmus.node.service.admission import Asked, Joined, Known, RefusalError, admit
from isthmus.node.service.doors import Bounds, Rates, address_of
from isthmus.node.service.records import Records
from isthmus.support.aio.serving import web

_LOG = logging.getLogger(__name__)
_TICKET_S = 900
_TICKETS = 4096
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Files:
    """Files of the controller that every node has, and their hashes, kept as long as a file does not change."""

    def __init__(self) -> None:
        self._known: dict[Path, tuple[tuple[int, int, int], str]] = {}

    def listed(self, manifest: Manifest) -> dict[str, Path]:
        """Hash -> path.

        Raises:
            JoinError: the controller lacks one.
        """
        found = {}
        for entry in manifest.same:
            path = Path(entry["path"])
            try:
                found[self._digest(path)] = path
            except OSError as error:
                if not entry.get("optional"):
                    raise JoinError(
                        f"the controller has no readable {path} ({error.strerror}); run site.yml"
                    ) from error
        return found

    def _digest(self, path: Path) -> str:
        with path.open("rb") as file:
            status = path.stat()
            state = status.st_ino, status.st_ctime_ns, status.st_size
            if path not in self._known or self._known[path][0] != state:
                self._known[path] = state, file_digest(file, "sha256").hexdigest()
        return self._known[path][1]


class Service:
    """Answers requests.

    Args:
        records: the controller's files.
        ca: the certificate of the cluster's CA.
        bounds: on who asks.
        clock: of expiry, in seconds since the epoch.
    """

    def __init__(self, records: Records, ca: Path, bounds: Bounds, clock: Callable[[], float] = time.time) -> None:
        self._records, self._ca, self._bounds, self._clock = records, ca, bounds, clock
        self._rates = Rates(bounds)
        self._files = Files()
        self._tickets: OrderedDict[str, float] = OrderedDict()
        self._alone = asyncio.Lock()

    def application(self) -> web.Application:
        """What aiohttp serves."""

        @web.middleware
        async def bounded(request: web.Request, handler: Handler) -> web.StreamResponse:
            return await self._bounded(request, handler)

        application = web.Application(client_max_size=REQUEST_BYTES, middlewares=[bounded])
        application.router.add_get(CA_PATH, self._send_ca)
        application.router.add_post(JOIN_PATH, self._join)
        application.router.add_get(f"{FILE_PATH}{{digest:[0-9a-f]{{64}}}}", self._give_file)
        return application

    async def _bounded(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        address = address_of(request.transport)
        if request.transport is not None:
            request.transport.get_protocol().asked = True  # type: ignore[attr-defined]
        if not self._rates.take(address):
            return _refused(429, "too many requests of this address; wait a minute")
        try:
            return await handler(request)
        except (RefusalError, MessageError, CertificateError, SealError) as error:
            _LOG.warning("refused %s: %s", address, error)
            return _refused(403, str(error))
        except (JoinError, OSError) as error:
            _LOG.error("%s", error)
            return _refused(503, "the controller cannot let nodes in now; see `journalctl -u isthmus-joind` there")

    async def _send_ca(self, _request: web.Request) -> web.StreamResponse:
        return web.Response(body=self._ca.read_bytes(), content_type="application/x-pem-file")

    async def _join(self, request: web.Request) -> web.StreamResponse:
        try:
            async with asyncio.timeout(self._bounds.body_s):
                asked = read_request(await request.read())
        except TimeoutError:
            return _refused(408, "the request took too long")
        # One at a time: two requests must not both be the last use of a token.
        async with self._alone:
            return web.json_response(self._answer(asked, address_of(request.transport)))

    def _answer(self, asked: Request, address: str) -> Mapping[str, Any]:
        manifest = self._records.manifest()
        wanted = certificates.requested(asked.request.encode())
        key = certificates.key_id(wanted)
        joined, used = self._records.joined()
        # A name that the inventory has no more is free again when it comes back.
        joined = {name: each for name, each in joined.items() if name in manifest.nodes}
        tokens = self._records.token(asked.token) if asked.token else {}
        known = Known(manifest.kind, manifest.nodes, manifest.release, tokens, joined, used)
        admit(Asked(asked.name, key, asked.release, asked.token, asked.secret), known, self._clock())
        certificate = b""
        if asked.look:
            # It gets what a node gets, secrets among it, so the log records who has them.
            _LOG.info("%s looks from %s, by token %s", asked.name, address, asked.token or "none, as before")
        else:
            users = used.get(asked.token, frozenset()) | {(asked.name, key)}
            before = joined.get(asked.name)
            again = before is not None and before.key == key
            now = Joined(key, before.token if again and before else asked.token, self._clock(), address)
            self._records.keep_joined(joined | {asked.name: now}, used | ({asked.token: users} if asked.token else {}))
            certificate = certificates.sign(
                wanted, self._records.authority(), manifest.cluster["name"], manifest.certificate_days
            )
            _LOG.info("%s joins from %s by token %s", asked.name, address, asked.token or "none, as before")
        content = json.dumps(
            {
                "manifest": _of_node(manifest, asked.name, self._files.listed(manifest)),
                "certificate": certificate.decode(),
                "ticket": self._ticket(),
            }
        )
        sealed = seal(content.encode(), decoded(asked.seal), context(asked.name, key))
        return {"schema": SCHEMA, "sealed": encoded(sealed)}

    def _ticket(self) -> str:
        ticket = secrets.token_urlsafe(32)
        self._tickets[ticket] = self._clock() + _TICKET_S
        while len(self._tickets) > _TICKETS:
            self._tickets.popitem(last=False)
        return ticket

    async def _give_file(self, request: web.Request) -> web.StreamResponse:
        ticket = request.headers.get("Authorization", "").removeprefix("Bearer ")
        if self._tickets.get(ticket, 0) < self._clock():
            raise RefusalError("the ticket is not valid, or has expired; run `isthmus node join` again")
        path = self._files.listed(self._records.manifest()).get(request.match_info["digest"])
        if path is None:
            raise RefusalError("the cluster was deployed again meanwhile; run `isthmus node join` again")
        return web.FileResponse(path)


def _of_node(manifest: Manifest, name: str, files: Mapping[str, Path]) -> dict[str, Any]:
    """A manifest for one node, with what it needs of the controller's files."""
    digests = {str(path): digest for digest, path in files.items()}
    same = [{**entry, "sha256": digests[entry["path"]]} for entry in manifest.same if entry["path"] in digests]
    own = replace(manifest, nodes={name: manifest.nodes[name]}, same=tuple(same))
    return {field: getattr(own, field) for field in own.__dataclass_fields__}


def _refused(status: int, words: str) -> web.Response:
    return web.json_response({"schema": SCHEMA, "error": words}, status=status)
