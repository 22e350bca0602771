"""Merges an image's layers into one tree (OCI image specification, layer.md).

Ids above those that a pod can have become nobody's.
"""

from __future__ import annotations

import posixpath
import tarfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from isthmus.images.archive import HIDDEN, Entry
from isthmus.images.errors import HostileImageError
from isthmus.images.tree import Inode, Kind, Tree, TreeError
from isthmus.model.image_accounts import IDS
from isthmus.model.images import Reference

NOBODY = 65534
# Of all layers together; the largest images of machine learning have a quarter.
MAX_FILES = 2_000_000
_OPAQUE = f"{HIDDEN}{HIDDEN}.opq"
_LONGEST_NAME, _LONGEST_PATH = 255, 4095
# Whatever its characters are.
_SURELY_SHORT = _LONGEST_NAME // 4
# Characters of a name in a message.
_SHOWN = 100


@dataclass(frozen=True, slots=True)
class Merged:
    """All layers of an image.

    Attributes:
        tree: what they make.
        strangers: how many files belong to an id that a pod does not have, and are nobody's now.
    """

    tree: Tree
    strangers: int


def merge(
    image: Reference, layers: Iterable[Iterable[Entry]], wanted: Callable[[], None], *, root_alone: bool = False
) -> Merged:
    """Put layers on one another.

    Args:
        image: for messages.
        layers: the entries of each, the lowest first.
        wanted: called now and then; raises where nobody waits for the image any more.
        root_alone: give all to root, for containers that know nobody else.

    Raises:
        HostileImageError: a layer is no archive, or a name in it leads nowhere.
        OSError: a layer cannot be read.
    """
    reader = _Reader(image, wanted, root_alone=root_alone)
    for number, entries in enumerate(layers, start=1):
        with reading(image, number):
            reader.layer(number, entries)
    return Merged(reader.tree, reader.strangers)


@contextmanager
def reading(image: Reference, number: int) -> Iterator[None]:
    """Turn what is wrong with the entries of a layer into the error that a user can act on."""
    try:
        yield
    except TreeError as error:
        raise hostile(image, number, str(error)) from error
    # What is no number, or a negative one, too.
    except (tarfile.TarError, ValueError, OverflowError, EOFError) as error:
        raise hostile(image, number, f"it is no archive ({error})") from error


def hostile(image: Reference, number: int, why: str) -> HostileImageError:
    """Return the error for a layer."""
    return HostileImageError(f"{image} is refused: in layer {number}, {why}; ask the image's author")


class _Reader:
    def __init__(self, image: Reference, wanted: Callable[[], None], *, root_alone: bool) -> None:
        self.tree, self.strangers, self.count = Tree(), 0, 0
        self._image, self._wanted, self._root_alone = image, wanted, root_alone

    def layer(self, number: int, entries: Iterable[Entry]) -> None:
        """Put one on those before."""
        for entry in entries:
            self._count(number)
            self._entry(entry, number)

    def _count(self, number: int) -> None:
        self.count += 1
        if self.count > MAX_FILES:
            raise hostile(self._image, number, f"it has more than {MAX_FILES} files")
        if self.count % 1000 == 0:
            self._wanted()

    def _entry(self, entry: Entry, number: int) -> None:
        _check(entry)
        folder, name = posixpath.split(posixpath.normpath(f"/{entry.name}"))
        if name == _OPAQUE:
            self.tree.hide(folder, number)
        elif name.startswith(HIDDEN):
            # Others that begin so are notes of aufs.
            if not name.startswith(HIDDEN * 2):
                self.tree.remove(posixpath.join(folder, name.removeprefix(HIDDEN)))
        elif entry.kind is None:
            known = self.tree.find(entry.target)
            if known.kind is Kind.FOLDER:
                raise TreeError(f"{entry.name!r} is a hard link to a folder")
            known.layer = number
            self.tree.put(entry.name, known)
        else:
            self.tree.put(entry.name, self._inode(entry, entry.kind, number))

    def _inode(self, entry: Entry, kind: Kind, number: int) -> Inode:
        uid, gid = (0, 0) if self._root_alone else (self._id(entry.uid), self._id(entry.gid))
        self.strangers += not self._root_alone and (uid, gid) != (entry.uid, entry.gid)
        target = entry.target if kind is Kind.LINK else ""
        return Inode(kind, entry.mode, uid, gid, entry.mtime_s, target, entry.source, entry.blocks, number)

    @staticmethod
    def _id(number: int) -> int:
        return number if 0 <= number < IDS else NOBODY


def _check(entry: Entry) -> None:
    """Refuse what no file system of Linux can have (limits.h; path_resolution(7))."""
    shown = repr(entry.name[:_SHOWN])
    if "\0" in entry.name + entry.target:
        raise TreeError(f"{shown} has a NUL in its name or target")
    if len(entry.name) > _SURELY_SHORT and max(map(len, _bytes(entry.name).split(b"/"))) > _LONGEST_NAME:
        raise TreeError(f"{shown} has a name of more than {_LONGEST_NAME} bytes")
    if entry.kind is Kind.LINK and not 0 < len(_bytes(entry.target)) <= _LONGEST_PATH:
        raise TreeError(f"{shown} leads nowhere, or to a path of more than {_LONGEST_PATH} bytes")


def _bytes(name: str) -> bytes:
    return name.encode(errors="surrogateescape")
