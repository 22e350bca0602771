"""Images of pods: pulled before a job is submitted, by the pod's policy and credentials, with a pause after failures.

A few pulls work at once, in threads; the cache makes equal ones one. The pause belongs to a name and its credentials,
not to a pod: a hundred pods of a wrong name ask the registry once.
"""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import os
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from isthmus.clients import squashfs
from isthmus.clients.kube import Object
from isthmus.clients.process import ProcessError
from isthmus.images import pull
from isthmus.images.errors import ImageError
from isthmus.images.known import Known
from isthmus.images.pull import Place
from isthmus.model.images import Pulled, Reference, parse
from isthmus.model.pod_inputs import Image, ImageState

_AT_ONCE = 4
# Kubernetes' own: 10 s, doubled up to 5 minutes.
_FIRST_S, _LAST_S = 10.0, 300.0

_log = logging.getLogger(__name__)
Pull = Callable[[Reference, Place], Pulled]


class ImageWaitError(Exception):
    """An image is not there yet, or never will be.

    Attributes:
        state: what the container's status says.
        retry_s: when to ask again.
    """

    def __init__(self, state: ImageState, retry_s: float) -> None:
        super().__init__(state.message)
        self.state = state
        self.retry_s = retry_s


@dataclass(frozen=True, slots=True)
class _Failed:
    message: str
    pause_s: float
    until_s: float


def quiet_pull(image: Reference, place: Place) -> Pulled:
    """Pull as `isthmus pull` does, and tell the log."""
    return pull.pull(image, place, lambda word: _log.info("%s %s", word, image))


class Images:
    """The images of all pods.

    Args:
        place: cache, scratch, machine, and the user's own credentials.
        puller: does the work, in a thread.
    """

    def __init__(self, place: Place, puller: Pull = quiet_pull) -> None:
        self._place = place
        self._pull = puller
        self._known = Known(place.cache)
        self._pool = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="pull")
        self._failed: dict[tuple[str, str], _Failed] = {}

    async def get(self, name: str, policy: str, secrets: Sequence[Object]) -> Image:
        """Return an image that is ready to start.

        Args:
            name: as the container writes it.
            policy: Always, IfNotPresent or Never.
            secrets: the pod's pull secrets.

        Raises:
            ImageWaitError: not now, and why.
        """
        try:
            image = parse(name)
        except ValueError as error:
            raise ImageWaitError(ImageState("InvalidImageName", str(error)), _LAST_S) from error
        auths = credentials(secrets)
        key = (name, json.dumps(auths, sort_keys=True))
        failed = self._failed.get(key)
        if failed and time.monotonic() < failed.until_s:
            message = f'Back-off pulling image "{name}": {failed.message}'
            raise ImageWaitError(ImageState("ImagePullBackOff", message), failed.until_s - time.monotonic())
        try:
            found = await asyncio.get_running_loop().run_in_executor(self._pool, self._get, image, policy, auths)
        except (ImageError, ProcessError, OSError) as error:
            pause_s = min(failed.pause_s * 2 if failed else _FIRST_S, _LAST_S)
            self._failed[key] = _Failed(str(error), pause_s, time.monotonic() + pause_s)
            raise ImageWaitError(ImageState("ErrImagePull", str(error)), pause_s) from error
        self._failed.pop(key, None)
        return found

    def _get(self, image: Reference, policy: str, auths: Mapping[str, Any]) -> Image:
        digest = self._known.digest(image) if policy != "Always" else None
        if digest is None and policy == "Never":
            message = f'Container image "{image}" is not present with pull policy of Never; `isthmus pull` it'
            raise ImageWaitError(ImageState("ErrImageNeverPull", message), _FIRST_S)
        with _authfile(self._place, auths) as place:
            if digest is None:
                digest = self._pull(image, place).digest
                self._known.remember(image, digest)
            config = self._known.config(image, digest, place)
        path = self._place.cache / f"{digest.replace(':', '-')}.squashfs"
        return described(image, digest, path, config)


def described(image: Reference, digest: str, path: Path, config: Mapping[str, Any]) -> Image:
    """Return an image with what it starts by itself."""
    user = config.get("User") or ""
    names = {part for part in user.split(":") if part and not part.isdecimal()}
    return Image(
        path=str(path),
        digest=digest,
        id=f"{image.place}@{digest}" if image.registry else digest,
        entrypoint=tuple(config.get("Entrypoint") or ()),
        cmd=tuple(config.get("Cmd") or ()),
        env=tuple(config.get("Env") or ()),
        user=user,
        workdir=config.get("WorkingDir") or "",
        users=_users(path) if names else {},
    )


def policy_of(container: Object) -> str:
    """Return a container's pull policy; the API server has set one, but for old objects."""
    given = container.get("imagePullPolicy")
    image = container.get("image", "")
    tag = image.rpartition("/")[2].partition("@")[0].partition(":")[2]
    return given or ("Always" if tag in ("", "latest") and "@" not in image else "IfNotPresent")


def credentials(secrets: Sequence[Object]) -> dict[str, Any]:
    """Return the registries' credentials of pull secrets of both kinds, as Docker's config.json has them."""
    auths: dict[str, Any] = {}
    for secret in secrets:
        data = secret.get("data") or {}
        for key in (".dockerconfigjson", ".dockercfg"):
            if key in data:
                try:
                    read = json.loads(base64.b64decode(data[key]))
                except ValueError:
                    _log.warning("secret %s holds no JSON in %s", secret["metadata"]["name"], key)
                    continue
                auths |= read.get("auths", {}) if key == ".dockerconfigjson" else read
    return auths


class _authfile:  # noqa: N801  a context manager, used like a function
    """Give a place whose credentials are the pod's, in memory, for as long as the block runs."""

    def __init__(self, place: Place, auths: Mapping[str, Any]) -> None:
        self._place, self._auths = place, auths
        self._folder: TemporaryDirectory[str] | None = None

    def __enter__(self) -> Place:
        if not self._auths:
            return self._place
        self._folder = TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None)  # noqa: S108
        path = Path(self._folder.name, "auth.json")
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            json.dump({"auths": self._auths}, file)
        return replace(self._place, authfile=path)

    def __exit__(self, *_: object) -> None:
        if self._folder:
            self._folder.cleanup()


def _users(path: Path) -> dict[str, tuple[int, int]]:
    """Read the image's own user names; an image without the file has none."""
    found: dict[str, tuple[int, int]] = {}
    for line in squashfs.read(path, "etc/passwd").splitlines():
        parts = line.split(":")
        if len(parts) >= 4 and parts[2].isdecimal() and parts[3].isdecimal():
            found.setdefault(parts[0], (int(parts[2]), int(parts[3])))
    return found
