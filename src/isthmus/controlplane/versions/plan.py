"""`plan`: the images that a start goes through, from the versions that ran the data last to the wanted one; pure.

The API server and etcd go one minor release at a time and never back (isthmus.model.skew). So data that are some
releases old go through several images, each of which must become ready before the next one starts.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from isthmus.controlplane.errors import ControlPlaneError
from isthmus.model import skew
from isthmus.model.skew import UnknownVersionError

# The word for the newest version of the site, whichever it is.
NEWEST = "newest"
_REMEDY = "an admin installs an Isthmus that knows this version"
_ASK = "ask an admin for {} (kubernetes_versions)"


class RefusedError(ControlPlaneError):
    """The wanted version cannot be reached from the data, or is not there."""


@dataclass(frozen=True, slots=True)
class Versions:
    """Versions that run, or ran, a user's data."""

    kubernetes: str
    etcd: str


# Before versions were recorded there were no others.
UNRECORDED = Versions("1.36.3", "3.6.14")


@dataclass(frozen=True, slots=True)
class Image:
    """An image of the control plane's programs on this site's hosts."""

    file: Path
    kubernetes: str
    etcd: str

    @property
    def versions(self) -> Versions:
        """What it has."""
        return Versions(self.kubernetes, self.etcd)


@dataclass(frozen=True, slots=True)
class Plan:
    """A start.

    Attributes:
        steps: images in their order; the last one serves.
        is_move: the data get other versions.
        warning: why it is not the version that was to be expected, with the remedy.
    """

    steps: tuple[Image, ...]
    is_move: bool = False
    warning: str = ""

    @property
    def last(self) -> Image:
        """The image that serves."""
        return self.steps[-1]


def plan(data: Versions | None, images: Iterable[Image], wanted: str = "", failed: str = "") -> Plan:
    """Compute the start.

    Args:
        data: versions that ran the data last; None for a cluster without data.
        images: of the site, in any order.
        wanted: a version of Kubernetes or the beginning of one, such as 1.36; empty for the newest that can be reached.
        failed: name of the file of an image that did not become ready; it is not tried again by itself.

    Raises:
        RefusedError: no image is wanted and can be reached.
    """
    try:
        return _plan(data, ordered(images), wanted, failed)
    except UnknownVersionError as error:
        raise RefusedError(f"{error}; {_REMEDY}") from error


def ordered(images: Iterable[Image]) -> list[Image]:
    """Return images, the oldest first.

    Raises:
        RefusedError: one has no version.
    """
    try:
        return sorted(images, key=lambda image: (*_numbers(image.versions), image.file.name))
    except UnknownVersionError as error:
        raise RefusedError(f"{error}; {_REMEDY}") from error


def _plan(data: Versions | None, known: Sequence[Image], wanted: str, failed: str) -> Plan:
    chosen = [image for image in known if not wanted or skew.fits(image.kubernetes, wanted)]
    if not chosen:
        raise RefusedError(f"this site has no Kubernetes {wanted or 'at all'}; {_remedy(known, wanted)}")
    if data is None:
        return Plan((chosen[-1],))
    usable = [image for image in known if image.file.name != failed]
    untried = [image for image in chosen if image in usable]
    # What ran last is there to stay with, also where the one that was asked for has failed.
    present = [image for image in usable if image.versions == data]
    for images, among in ((untried or present, usable), (chosen, known)):
        for image in reversed(images):
            if steps := _path(data, image, among):
                return Plan(steps, image.versions != data, "" if wanted or failed else _warning(data, image, known))
    raise RefusedError(_reason(data, chosen[-1], known))


def _path(data: Versions, target: Image, known: Sequence[Image]) -> tuple[Image, ...]:
    """Return the shortest way to an image, by newer images before older ones; empty for none."""
    if target.versions == data:
        return (target,)
    ways: deque[tuple[Image, ...]] = deque([()])
    seen: set[Image] = set()
    while ways:
        way = ways.popleft()
        now = way[-1].versions if way else data
        if _may_follow(now, target):
            return (*way, target)
        for image in reversed(known):
            if image not in seen and _is_newer(image, now) and _may_follow(now, image):
                seen.add(image)
                ways.append((*way, image))
    return ()


def _may_follow(now: Versions, image: Image) -> bool:
    return skew.KUBERNETES.accepts(image.kubernetes, now.kubernetes) and skew.ETCD.accepts(image.etcd, now.etcd)


def _is_newer(image: Image, now: Versions) -> bool:
    return _numbers(image.versions) > _numbers(now)


def _numbers(versions: Versions) -> tuple[tuple[int, ...], tuple[int, ...]]:
    return skew.numbers(versions.kubernetes), skew.numbers(versions.etcd)


def _warning(data: Versions, last: Image, known: Sequence[Image]) -> str:
    newest = known[-1]
    return "" if last.versions == newest.versions else _reason(data, newest, known)


def _reason(data: Versions, target: Image, known: Sequence[Image]) -> str:
    """Return why an image cannot follow the data, with the remedy."""
    before, after = skew.KUBERNETES.place(data.kubernetes), skew.KUBERNETES.place(target.kubernetes)
    ran = f"Kubernetes {data.kubernetes} ran your data last"
    own = skew.release(data.kubernetes)
    if after < before:
        here = f"stay with {own}" if _of(own, known) else _ASK.format(own)
        return f"{ran}, and {target.kubernetes} cannot read them; {here}, or begin empty after `isthmus down --purge`"
    between = skew.KUBERNETES.releases[before + 1 : after]
    if missing := [release for release in between if not _of(release, known)]:
        return (
            f"{ran}, and it goes to {target.kubernetes} one minor release at a time; this site lacks"
            f" {', '.join(missing)}: {_ASK.format('it' if len(missing) == 1 else 'them')}"
        )
    return (
        f"etcd {data.etcd} wrote your data last, and from there etcd {target.etcd} of Kubernetes {target.kubernetes}"
        f" cannot be reached; {_ASK.format('a Kubernetes with an etcd between')}"
    )


def _of(release: str, known: Iterable[Image]) -> bool:
    return any(skew.release(image.kubernetes) == release for image in known)


def _remedy(known: Sequence[Image], wanted: str) -> str:
    there = ", ".join(dict.fromkeys(image.kubernetes for image in known))
    return f"choose from {there}, or {_ASK.format(wanted)}" if there else "an admin runs playbooks/kubernetes.yml"
