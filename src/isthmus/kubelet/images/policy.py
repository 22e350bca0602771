"""Pull policy, credentials and backoff of images (concepts/containers/images)."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterable
from enum import StrEnum
from typing import Any

from isthmus.model.images import parse
from isthmus.model.pod_inputs import ImageState, Object
from isthmus.podproto.reasons import Reason

_FIRST_S = 10
_LONGEST_S = 300


class Pull(StrEnum):
    """The decision for an image."""

    PULL = "pull"
    """Ask the registry; unchanged layers are not copied."""
    USE = "use"
    """Use the cached image."""
    REFUSE = "refuse"
    """The image is missing and must not be pulled."""
    INVALID = "invalid"
    """The image name is invalid."""


def decide(container: Object, present: bool) -> Pull:
    """Return the decision for a container's image.

    Args:
        container: with image and imagePullPolicy.
        present: whether the image of this name or digest is in the cache.
    """
    name = container.get("image") or ""
    try:
        reference = parse(name)
    except ValueError:
        return Pull.INVALID
    moving = reference.digest is None and reference.tag in (None, "latest")
    policy = container.get("imagePullPolicy") or ("Always" if moving else "IfNotPresent")
    if policy == "Never":
        return Pull.USE if present else Pull.REFUSE
    return Pull.USE if present and policy == "IfNotPresent" else Pull.PULL


def refusal(container: Object, pull: Pull) -> ImageState:
    """Return the state of an image that is missing and not pulled."""
    name = container.get("image") or ""
    if pull == Pull.INVALID:
        return ImageState(Reason.IMAGE_NAME, f"{name!r} is no name of an image; correct it")
    message = f'Container image "{name}" is not present with pull policy of Never; pull it by `isthmus pull {name}`'
    return ImageState(Reason.IMAGE_NEVER_PULL, message)


def failed(message: str, waiting: bool, name: str) -> ImageState:
    """Return the state of an image that could not be pulled.

    Args:
        message: of the failure.
        waiting: whether another attempt follows.
        name: of the image.
    """
    if waiting:
        return ImageState(Reason.IMAGE_BACK_OFF, f'Back-off pulling image "{name}": {message}')
    return ImageState(Reason.IMAGE_PULL, message)


def back_off_s(failures: int) -> int:
    """Return how long to wait after a number of failures in a row: 10 s, doubled each time, at most 5 min."""
    return min(_FIRST_S << min(max(failures, 1) - 1, 5), _LONGEST_S)


def credentials(secrets: Iterable[Object]) -> dict[str, Any]:
    """Merge pull secrets into one credentials file in Docker's form; the first that names a registry wins.

    A secret of another type, or with unreadable content, is ignored, as in Kubernetes.
    """
    found: dict[str, Any] = {}
    for secret in secrets:
        for registry, login in _logins(secret).items():
            found.setdefault(registry, login)
    return {"auths": found}


def _logins(secret: Object) -> dict[str, Any]:
    data = secret.get("data") or {}
    try:
        if ".dockerconfigjson" in data:
            read = json.loads(base64.b64decode(data[".dockerconfigjson"])).get("auths")
        else:
            read = json.loads(base64.b64decode(data.get(".dockercfg", "e30=")))
    except (ValueError, binascii.Error, AttributeError):
        return {}
    return read if isinstance(read, dict) else {}
