"""Pulls images before a job is submitted, by the pod's policy and credentials, with a backoff after failures.

A few pulls of each registry run concurrently, in threads, so a stalled registry delays its own images alone; an image
in the cache waits for none of them. Equal pulls are merged. Every program of a pull has a deadline.
The backoff is per image and credentials, not per pod: a hundred pods with a wrong name make one request.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from isthmus.clients import squashfs
from isthmus.clients.kube.api import Object
from isthmus.clients.process import ProcessError
from isthmus.images import apart
from isthmus.images.cache import Cache
from isthmus.images.errors import ImageError, NoSpaceError
from isthmus.images.known import Known
from isthmus.images.workspace import Workspace
from isthmus.kubelet.images import policy
from isthmus.kubelet.images.policy import Pull as Order
from isthmus.model import image_accounts
from isthmus.model.image_accounts import Accounts
from isthmus.model.images import Pulled, Reference, file_name, parse
from isthmus.model.pod_inputs import Image, ImageState

# Concurrent pulls: of one registry, and in all.
_AT_ONCE = 4
_PULLS = 32
# Cached entries of images' accounts and failures.
_KEPT = 1000
# Between two checks for an image that only the user can provide.
_AGAIN_S = 10.0

_log = logging.getLogger(__name__)
Pull = Callable[[Reference, Workspace], Pulled]


class ImageWaitError(Exception):
    """An image is not ready.

    Attributes:
        state: for the container's status.
        retry_s: until the next attempt.
    """

    def __init__(self, state: ImageState, retry_s: float) -> None:
        super().__init__(state.message)
        self.state = state
        self.retry_s = retry_s


@dataclass(frozen=True, slots=True)
class _Failed:
    message: str
    count: int
    until_s: float


def quiet_pull(image: Reference, place: Workspace) -> Pulled:
    """Pull as `isthmus pull` does, in a separate process, and log the progress."""
    return apart.pull(image, place, lambda word: _log.info("%s %s", word, image))


class Images:
    """The images of all pods.

    Args:
        place: cache, scratch, machine, and the user's own credentials.
        puller: pulls one image, in a thread.
        collect: removes unused images when the home is full; returns the bytes freed.
        back_off_s: returns the pause after a number of failures in a row.
    """

    def __init__(
        self,
        place: Workspace,
        puller: Pull = quiet_pull,
        collect: Callable[[], int] = lambda: 0,
        back_off_s: Callable[[int], float] = policy.back_off_s,
    ) -> None:
        self._pull, self._collect, self._back_off_s = puller, collect, back_off_s
        self._known = Known(place.cache)
        self._ended = threading.Event()
        self._place = replace(place, unwanted=self._ended.is_set)
        self._pool = ThreadPoolExecutor(_PULLS, thread_name_prefix="pull")
        self._ready = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="image")
        self._registries: dict[str, asyncio.Semaphore] = {}
        self._failed: dict[tuple[str, str], _Failed] = {}
        self._read: dict[str, Accounts] = {}
        self._running: dict[tuple[str, ...], asyncio.Future[Image]] = {}

    async def get(self, container: Object, secrets: Sequence[Object]) -> Image:
        """Return a container's image, ready to start.

        Args:
            container: with image and imagePullPolicy.
            secrets: the pod's pull secrets.

        Raises:
            ImageWaitError: the image is not ready, with the reason.
        """
        name = container.get("image") or ""
        try:
            present = await asyncio.to_thread(self._present, name)
        except OSError as error:
            # Nobody knows what is there, so nothing is pulled.
            why = f"the images in {self._place.cache} cannot be read: {error.strerror}; the pod starts when they can"
            raise ImageWaitError(policy.failed(why, False, name), _AGAIN_S) from error
        order = policy.decide(container, present is not None)
        if order in (Order.INVALID, Order.REFUSE):
            raise ImageWaitError(policy.refusal(container, order), _AGAIN_S)
        auths = policy.credentials(secrets)
        key = (name, json.dumps(auths, sort_keys=True))
        failed = self._failed.get(key)
        if failed and time.monotonic() < failed.until_s:
            state = policy.failed(failed.message, True, name)
            raise ImageWaitError(state, failed.until_s - time.monotonic())
        digest = present if order == Order.USE else None
        try:
            found = await asyncio.shield(self._once((*key, digest or ""), parse(name), digest, auths))
        except (ImageError, ProcessError, OSError, ValueError) as error:
            count = failed.count + 1 if failed else 1
            pause_s = self._back_off_s(count)
            while len(self._failed) >= _KEPT:
                self._failed.pop(next(iter(self._failed)))
            self._failed[key] = _Failed(str(error), count, time.monotonic() + pause_s)
            # Shown as ImagePullBackOff.
            raise ImageWaitError(policy.failed(str(error), False, name), min(pause_s, 1)) from error
        self._failed.pop(key, None)
        return found

    def _once(
        self, key: tuple[str, ...], image: Reference, digest: str | None, auths: Mapping[str, Any]
    ) -> asyncio.Future[Image]:
        """Start a pull, or join one of the same image: a Deployment's pods make one request."""
        if key not in self._running:
            future = asyncio.ensure_future(self._turn(image, digest, auths))
            self._running[key] = future
            future.add_done_callback(lambda _: self._running.pop(key, None))
        return self._running[key]

    async def _turn(self, image: Reference, digest: str | None, auths: Mapping[str, Any]) -> Image:
        loop = asyncio.get_running_loop()
        if digest is not None:
            return await loop.run_in_executor(self._ready, self._get, image, digest, auths)
        async with self._registries.setdefault(image.registry, asyncio.Semaphore(_AT_ONCE)):
            return await loop.run_in_executor(self._pool, self._get, image, digest, auths)

    def stop(self) -> None:
        """Stop all pulls; the next kubelet starts them again."""
        self._ended.set()
        for pool in (self._pool, self._ready):
            pool.shutdown(wait=False, cancel_futures=True)

    def failure(self, name: str) -> ImageState | None:
        """Return why the last pull of an image failed; None if it did not, or there was none."""
        found = [failed for (known, _), failed in self._failed.items() if known == name]
        return policy.failed(found[-1].message, False, name) if found else None

    def _present(self, name: str) -> str | None:
        try:
            return self._known.digest(parse(name))
        except ValueError:
            return None

    def _get(self, image: Reference, digest: str | None, auths: Mapping[str, Any]) -> Image:
        with _authfile(self._place, auths) as place:
            if digest is None:
                digest = self._pulled(image, place).digest
                self._known.remember(image, digest)
            else:
                Cache(place.cache).use(digest)
            config = self._known.config(image, digest, place)
        path = self._place.cache / file_name(digest)
        return described(image, digest, path, config, self._accounts(digest, path))

    def _pulled(self, image: Reference, place: Workspace) -> Pulled:
        try:
            return self._pull(image, place)
        except NoSpaceError:
            if not self._collect():
                raise
            return self._pull(image, place)

    def _accounts(self, digest: str, path: Path) -> Accounts:
        """Return an image's users and groups, cached by digest."""
        if digest not in self._read:
            passwd, group = (squashfs.read(path, name) for name in ("etc/passwd", "etc/group"))
            if len(self._read) >= _KEPT:
                self._read.clear()
            self._read[digest] = image_accounts.read(passwd, group)
        return self._read[digest]


def described(image: Reference, digest: str, path: Path, config: Mapping[str, Any], accounts: Accounts) -> Image:
    """Return an image with its default command."""
    return Image(
        path=str(path),
        digest=digest,
        id=f"{image.place}@{digest}" if image.registry else digest,
        entrypoint=tuple(config.get("Entrypoint") or ()),
        cmd=tuple(config.get("Cmd") or ()),
        env=tuple(config.get("Env") or ()),
        user=config.get("User") or "",
        workdir=config.get("WorkingDir") or "",
        accounts=accounts,
    )


class _authfile:  # noqa: N801  a context manager, used like a function
    """Yield a workspace with the pod's credentials, kept in memory during the block."""

    def __init__(self, place: Workspace, auths: Mapping[str, Any]) -> None:
        self._place, self._auths = place, auths
        self._folder: TemporaryDirectory[str] | None = None

    def __enter__(self) -> Workspace:
        if not self._auths["auths"]:
            return self._place
        self._folder = TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None)  # noqa: S108
        path = Path(self._folder.name, "auth.json")
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            json.dump(self._auths, file)
        return replace(self._place, authfile=path)

    def __exit__(self, *_: object) -> None:
        if self._folder:
            self._folder.cleanup()
