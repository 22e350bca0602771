"""Errors of pulls; each names the problem and the remedy."""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator
from contextlib import contextmanager

from isthmus.clients import confined
from isthmus.clients.process import ProcessError, StalledError
from isthmus.model.images import Reference


class ImageError(Exception):
    """An image that could not be had."""


class DeniedError(ImageError):
    """The registry does not let this user read the image."""


class UnknownImageError(ImageError):
    """There is no such image, or none for this machine."""


class UnreachableError(ImageError):
    """The registry does not answer, or not as itself."""


class HostileImageError(ImageError):
    """An image that is made to change what lies outside it, or that nobody can make sense of."""


class NoSpaceError(ImageError):
    """A disk is full, or a quota used up."""


# What skopeo, Apptainer and mksquashfs write, in the order in which it is looked for: a full disk shows in words of
# the system, whatever failed over it; a missing image may be reported as a missing file.
_SIGNS: tuple[tuple[type[ImageError], tuple[str, ...]], ...] = (
    (NoSpaceError, ("no space left on device", "disk quota exceeded", "file too large")),
    (DeniedError, ("authentication required", "unauthorized", "denied", "forbidden")),
    (
        UnreachableError,
        ("connection refused", "no such host", "no route to host", "i/o timeout", "x509", "https client"),
    ),
    (UnknownImageError, ("manifest unknown", "name unknown", "no such file", "not found")),
)
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
# The end of skopeo's last line, without the names that are known already.
_CAUSE = re.compile(r'(?:.*Get \\"[^"]*\\": |.*?msg=")(?P<cause>.*)"\s*$', re.DOTALL)


@contextmanager
def unpacking(image: Reference, places: str) -> Iterator[None]:
    """Turn a failure to unpack into the error that a user can act on; what an image holds is no word of a registry."""
    try:
        yield
    except ProcessError as error:
        text = f"{error.stderr}\n{error.stdout}"
        if any(sign in text.lower() for sign in _SIGNS[0][1]):
            raise NoSpaceError(_no_space(places)) from error
        if error.status == confined.STATUS:
            raise ImageError(error.stderr.strip()) from error
        raise ImageError(f"{image} cannot be unpacked; {error}") from error


@contextmanager
def explained(image: Reference, places: str, authfile: str) -> Iterator[None]:
    """Turn a program's failure into the error that a user can act on.

    Args:
        image: what is wanted.
        places: the folders that are written to.
        authfile: where the credentials stand.
    """
    try:
        yield
    except StalledError as error:
        where = image.registry or image
        raise UnreachableError(f"{where} sends next to nothing of {image}: {error}; see whether it runs") from error
    except ProcessError as error:
        text = f"{error.stderr}\n{error.stdout}".lower()
        kind = next((kind for kind, signs in _SIGNS if any(sign in text for sign in signs)), ImageError)
        if error.status == confined.STATUS:
            raise ImageError(error.stderr.strip()) from error
        # What an archive holds is no word of a registry.
        if kind is not NoSpaceError and "untarring file" in text:
            raise HostileImageError(
                f"{image} is refused: it is no archive that an honest builder writes; {error}"
            ) from error
        raise kind(_message(kind, image, places, authfile, error)) from error
    except OSError as error:
        if error.errno in FULL:
            raise NoSpaceError(_no_space(places)) from error
        raise ImageError(f"{error.filename or places}: {error.strerror}; it must be yours to write") from error


def _message(kind: type[ImageError], image: Reference, places: str, authfile: str, error: ProcessError) -> str:
    where = image.registry
    return {
        NoSpaceError: _no_space(places),
        DeniedError: (
            f"{where} does not give {image} to the credentials in {authfile}; "
            f"check the name, ask its owner to share it, or log in with `apptainer registry login --username NAME docker://{where}`"
        ),
        UnknownImageError: f"there is no image {image}; check its name and tag",
        UnreachableError: f"{where or image} cannot be reached: {_cause(error)}; check its name and that it runs",
        ImageError: f"{image} cannot be had; {error}",
    }[kind]


def _no_space(places: str) -> str:
    return f"no space is left in {places}; remove what you do not need, or set APPTAINER_TMPDIR to a larger folder"


def _cause(error: ProcessError) -> str:
    lines = error.stderr.strip().splitlines() or [str(error)]
    found = _CAUSE.match(lines[-1])
    return found["cause"] if found else lines[-1]
