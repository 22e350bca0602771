"""Container images: references, and the result of a pull."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path


class Transport(StrEnum):
    """Where an image lies, in skopeo's words (containers-transports(5))."""

    DOCKER = "docker"
    OCI = "oci"
    OCI_ARCHIVE = "oci-archive"
    DOCKER_ARCHIVE = "docker-archive"


# As Docker and Kubernetes read a name without a registry, and one without a tag.
DEFAULT_REGISTRY = "docker.io"
DEFAULT_NAMESPACE = "library"
DEFAULT_TAG = "latest"

# A registry or a part of one, as containers-registries.conf(5) has it: no scheme, no tag.
REGISTRY = re.compile(r"[A-Za-z0-9.-]+(:[0-9]{1,5})?(/[a-z0-9._-]+)*")

_PART = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_NAME = re.compile(
    rf"(?P<name>(?:[A-Za-z0-9.-]+(?::[0-9]+)?/)?{_PART}(?:/{_PART})*)"
    r"(?::(?P<tag>[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}))?(?:@(?P<digest>sha256:[0-9a-f]{64}))?"
)
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Reference:
    """Which image is meant.

    Attributes:
        transport: where it lies.
        place: for a registry `host[:port]/path`; else a path on disk, perhaps with `:tag`.
        tag: in a registry; None when only a digest was given.
        digest: `sha256:<hex>`; None when only a tag was given.
    """

    transport: Transport
    place: str
    tag: str | None = None
    digest: str | None = None

    @property
    def registry(self) -> str:
        """The registry's `host[:port]`; empty for an image on disk."""
        return self.place.partition("/")[0] if self.transport == Transport.DOCKER else ""

    def at(self, digest: str) -> Reference:
        """Return the same image by digest; an image on disk has no other name."""
        return Reference(self.transport, self.place, None, digest) if self.registry else self

    def __str__(self) -> str:
        """Write it as skopeo and Apptainer take it; the digest wins over the tag, which both refuse beside it."""
        if not self.registry:
            return f"{self.transport}:{self.place}"
        return f"docker://{self.place}" + (f"@{self.digest}" if self.digest else f":{self.tag}")


def parse(text: str) -> Reference:
    """Read `[docker://]NAME[:TAG][@DIGEST]` or `oci:PATH`, `oci-archive:PATH`, `docker-archive:PATH`.

    Raises:
        ValueError: it is neither; the message says what is wrong.
    """
    transport, colon, place = text.partition(":")
    if colon and transport in set(Transport) - {Transport.DOCKER}:
        if not place:
            raise ValueError(f"{text!r} names no file")
        return Reference(Transport(transport), place)
    found = _NAME.fullmatch(text.removeprefix("docker://"))
    if not found:
        raise ValueError(f"{text!r} is no image; write e.g. debian:13, ctl:5000/isthmus/debian or oci-archive:file.tar")
    digest = found["digest"]
    tag = found["tag"] or (None if digest else DEFAULT_TAG)
    return Reference(Transport.DOCKER, _full(found["name"]), tag, digest)


def is_digest(text: str) -> bool:
    """Return whether this is `sha256:` and 64 hex digits."""
    return _DIGEST.fullmatch(text) is not None


def file_name(digest: str) -> str:
    """Return what an image is called in a user's cache; the number is that of what such files hold.

    The first had all files as root's.
    """
    return f"{digest.replace(':', '-')}.2.squashfs"


@dataclass(frozen=True, slots=True)
class Pulled:
    """An image that is ready to start; what `isthmus pull --json` prints.

    Attributes:
        schema: changes when a field changes its meaning.
        reference: what was asked for, in full.
        digest: of the manifest for this machine.
        path: the squashfs file.
        size_bytes: its size.
        cached: whether it was there already.
        took_s: how long it took.
    """

    schema: int
    reference: str
    digest: str
    path: Path
    size_bytes: int
    cached: bool
    took_s: float


def _full(name: str) -> str:
    first, slash, _ = name.partition("/")
    if slash and (first == "localhost" or "." in first or ":" in first):
        return name
    return f"{DEFAULT_REGISTRY}/{name if slash else f'{DEFAULT_NAMESPACE}/{name}'}"
