"""The HTTP service of isthmus-tokend, reached through nginx alone, which limits bytes, seconds and requests.

| request | who asks | answer |
|---|---|---|
| GET /auth/token | a client of the registry, with a password | a token for what its account may do |
| GET /room | nginx, before each write | 204; or 403 and why there is no room, in a header |
| GET /isthmus/v1/images | `isthmus images list --registry` | what the account has |
| PUT /isthmus/v1/access | `isthmus images access` | who may pull from a repository of the account's own |
| GET /metrics | isthmus-exporter, past nginx | counts for Prometheus |
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable, Mapping

from isthmus.model.registry import (
    ACCESS_PATH,
    IMAGES_PATH,
    PRIVATE,
    SCHEMA,
    Overview,
    RegistryMessageError,
    Repository,
    is_namespace,
    is_repository,
    namespace,
    read_access,
    write_overview,
)
from isthmus.registry.figures import Figures, Outcome, What
from isthmus.registry.records import Records, RecordsError
from isthmus.registry.rights import ScopeError, granted, scopes
from isthmus.registry.room import Disk, Usage, refusal
from isthmus.registry.settings import Settings
from isthmus.registry.storage import Storage
from isthmus.registry.tokens import LIFETIME_S, Signer, TokenError
from isthmus.support.aio.serving import web
from isthmus.support.metrics import CONTENT_TYPE
from isthmus.support.threads import Threads

TOKEN_PATH, ROOM_PATH, METRICS_PATH = "/auth/token", "/room", "/metrics"
# How old a usage may be that a write is judged by.
FRESH_S = 1.0
_BODY_BYTES = 16 << 10
_UNKNOWN = "no account of the registry, or another password; the site's playbook writes it into your home again"
_REMEMBERED = 4096
_WHATS = {TOKEN_PATH: What.TOKEN, ROOM_PATH: What.WRITE, IMAGES_PATH: What.IMAGES, ACCESS_PATH: What.ACCESS}
_LOG = logging.getLogger(__name__)
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class RefusedError(Exception):
    """A request that is refused.

    Args:
        status: of HTTP.
        words: what is wrong.
        challenge: how to show who one is.
    """

    def __init__(self, status: int, words: str, challenge: str = "") -> None:
        super().__init__(words)
        self.status, self.challenge = status, challenge


class Service:
    """Answers.

    Args:
        settings: gives those of now.
        records: what owners have said.
        storage: the registry's disk.
        signer: of tokens.
        clock: seconds since the epoch.
    """

    def __init__(
        self,
        settings: Callable[[], Settings],
        records: Records,
        storage: Storage,
        signer: Signer,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._settings, self._records, self._storage = settings, records, storage
        self._signer, self._clock = signer, clock
        self._figures = Figures()
        # One, for the disk's memory is not for several.
        self._disk = Threads("disk", 1)
        self._alone = asyncio.Lock()
        self._usages: dict[str, tuple[float, Usage]] = {}

    def application(self) -> web.Application:
        """What aiohttp serves."""

        @web.middleware
        async def refusals_answered(request: web.Request, handler: Handler) -> web.StreamResponse:
            answer = await self._answered(request, handler)
            if what := _WHATS.get(request.path):
                self._figures.count(what, _outcome(answer.status))
            return answer

        application = web.Application(client_max_size=_BODY_BYTES, middlewares=[refusals_answered])
        application.router.add_get(TOKEN_PATH, self._give_token)
        application.router.add_get(ROOM_PATH, self._judge_room)
        application.router.add_get(IMAGES_PATH, self._show_images)
        application.router.add_put(ACCESS_PATH, self._set_access)
        application.router.add_get(METRICS_PATH, self._show_metrics)
        return application

    async def _answered(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            return await handler(request)
        except RefusedError as error:
            return _refused(error.status, str(error), {"WWW-Authenticate": error.challenge} if error.challenge else {})
        except RecordsError as error:
            _LOG.error("%s", error)
            return _refused(409, str(error))
        except OSError as error:
            _LOG.error("%s %s: %s", request.method, request.path, error)
            return _refused(503, "the registry cannot answer now; see `journalctl -u isthmus-tokend` on the controller")

    def _account(self, request: web.Request, settings: Settings) -> str:
        account = settings.known(request.headers.get("Authorization", ""))
        if not account:
            raise RefusedError(401, _UNKNOWN, 'Basic realm="isthmus"')
        return account

    async def _give_token(self, request: web.Request) -> web.StreamResponse:
        settings = self._settings()
        account = self._account(request, settings)
        if request.query.get("service", settings.service) != settings.service:
            raise RefusedError(400, f"this is the registry {settings.service}")
        try:
            asked = scopes(request.query.getall("scope", []))
        except ScopeError as error:
            raise RefusedError(400, str(error)) from error
        allowed = {scope: granted(account, scope, settings.keeper, self._records.access) for scope in asked}
        now_s = self._clock()
        token = self._signer.token(account, allowed, now_s)
        issued = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now_s))
        content = {"token": token, "access_token": token, "expires_in": LIFETIME_S, "issued_at": issued}
        return web.json_response(content, headers={"Cache-Control": "no-store"})

    async def _judge_room(self, request: web.Request) -> web.StreamResponse:
        """Judge a write by who brings it: a token writes below its account's name alone, as the registry sees to."""
        authorization = request.headers.get("Authorization", "")
        if not authorization:
            # The registry says what token this would take.
            return web.Response(status=204)
        scheme, _, token = authorization.partition(" ")
        try:
            account = self._signer.account(token, self._clock()) if scheme.lower() == "bearer" else ""
        except TokenError:
            account = ""
        settings = self._settings()
        if account not in settings.accounts:
            realm = f"https://{request.host}{TOKEN_PATH}"
            challenge = f'Bearer realm="{realm}",service="{settings.service}",error="invalid_token"'
            raise RefusedError(401, "the token is not valid, or over", challenge)
        if account != settings.keeper and (reason := await self._reason(account, settings, request)):
            _LOG.warning("refused a write: %s", reason)
            return web.Response(status=403, headers={"X-Reason": reason})
        return web.Response(status=204, headers={"X-Account": account})

    async def _reason(self, account: str, settings: Settings, request: web.Request) -> str:
        length = request.headers.get("X-Content-Length", "")
        length_bytes = int(length) if length.isascii() and length.isdecimal() else 0
        usage = await self._usage(account)
        disk = Disk(await self._disk.call(self._storage.free_bytes), settings.reserve_bytes)
        return refusal(account, usage, settings.accounts[account].quota_bytes, disk, length_bytes)

    async def _usage(self, account: str, fresh_s: float = FRESH_S) -> Usage:
        # Who waits takes what the one before them has counted.
        async with self._alone:
            counted_s, usage = self._usages.get(account, (float("-inf"), Usage()))
            began_s = time.monotonic()
            if began_s - counted_s > fresh_s:
                usage = await self._disk.call(self._storage.usage, account)
                if len(self._usages) >= _REMEMBERED:
                    self._usages.clear()
                self._usages[account] = began_s, usage
        return usage

    async def _show_images(self, request: web.Request) -> web.StreamResponse:
        settings = self._settings()
        account = self._account(request, settings)
        # A user who has just pushed looks for what that took.
        usage = await self._usage(account, 0) if is_namespace(account) else Usage()
        repositories = await self._disk.call(self._repositories, account) if is_namespace(account) else ()
        quota_bytes = settings.accounts[account].quota_bytes if is_namespace(account) else 0
        shared = tuple(self._records.shared_with(account))
        overview = Overview(account, usage.counted_bytes, quota_bytes, repositories, shared)
        return web.json_response(write_overview(overview))

    def _repositories(self, account: str) -> tuple[Repository, ...]:
        said = self._records.of(account)
        found = []
        for folder in self._storage.repositories(account):
            name, tags = self._storage.name(folder), self._storage.tags(folder)
            untagged = tuple(digest for digest in self._storage.manifests(folder) if digest not in tags.values())
            if tags or untagged:
                found.append(Repository(name, said.pop(name, PRIVATE), tags, untagged))
        # What was said about a name before anything was pushed to it.
        found += [Repository(name, access) for name, access in said.items()]
        return tuple(sorted(found, key=lambda each: each.name))

    async def _set_access(self, request: web.Request) -> web.StreamResponse:
        settings = self._settings()
        account = self._account(request, settings)
        try:
            said = json.loads(await request.read())
            repository = said.pop("repository")
            access = read_access(said)
        except RegistryMessageError as error:
            raise RefusedError(400, str(error)) from error
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise RefusedError(400, "the body is no JSON object with `repository`") from error
        if not isinstance(repository, str) or not is_repository(repository):
            raise RefusedError(400, "that is no name of a repository")
        if namespace(repository) != account or not is_namespace(account):
            raise RefusedError(403, f"{repository} is not yours; yours begin with {account}/")
        if unknown := sorted(access.users - settings.accounts.keys()):
            raise RefusedError(400, f"the registry has no account {unknown[0]!r}")
        # Short, and one at a time: what is kept is what was answered.
        self._records.keep(repository, access)
        _LOG.info("%s: %s may be pulled by %s", account, repository, access.words())
        return web.json_response({"schema": SCHEMA, "repository": repository})

    async def _show_metrics(self, _request: web.Request) -> web.StreamResponse:
        settings = self._settings()
        disk = Disk(await self._disk.call(self._storage.free_bytes), settings.reserve_bytes)
        text = self._figures.page(disk, len(settings.accounts))
        return web.Response(text=text, headers={"Content-Type": CONTENT_TYPE})

    def stop(self) -> None:
        """Wait for no thread."""
        self._disk.stop()


def _outcome(status: int) -> Outcome:
    if status < 400:
        return Outcome.OK
    return Outcome.FAILED if status in (409, 503) else Outcome.REFUSED


def _refused(status: int, words: str, headers: Mapping[str, str] | None = None) -> web.Response:
    """Say it to `isthmus images`, and to clients of registries in their form (OCI distribution, error codes)."""
    code = {401: "UNAUTHORIZED", 403: "DENIED"}.get(status, "UNSUPPORTED")
    content = {"schema": SCHEMA, "error": words, "errors": [{"code": code, "message": words}]}
    return web.json_response(content, status=status, headers=headers)
