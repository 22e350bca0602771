"""The files of an image as a tree in memory, into which its layers are put one after the other.

Names in layers are a stranger's. They are followed in this tree alone, never on a disk: `..` ends at its root, and a
link leads to where it would lead a program in the container. So no name can reach anything outside the image.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from isthmus.images.squashfs.blocks import Blocks

# As the kernel follows (path_resolution(7)).
_MOST_LINKS = 40


class TreeError(Exception):
    """A name that leads nowhere: through a file, a link to itself, or to what is not there."""


class Kind(Enum):
    """What a file is."""

    FILE = "file"
    FOLDER = "folder"
    LINK = "link"
    FIFO = "fifo"


@dataclass(frozen=True, slots=True)
class Source:
    """Where the content of a file lies: which file, and in it from where, how many bytes."""

    path: str
    offset: int
    size: int


@dataclass(eq=False, slots=True)
class Inode:
    """A file; several names of a tree may be of the same.

    Attributes:
        kind: what it is.
        mode: twelve bits, set-id and sticky ones among them.
        uid: whom it belongs to, in the container.
        gid: its group, in the container.
        mtime_s: since 1970.
        target: of a link.
        source: of a file: its plain content.
        blocks: of a file: its content as a squashfs has it, in place of a source.
        layer: which layer it is of, or was changed by last.
        children: of a folder.
    """

    kind: Kind
    mode: int
    uid: int = 0
    gid: int = 0
    mtime_s: int = 0
    target: str = ""
    source: Source | None = None
    blocks: Blocks | None = None
    layer: int = 0
    children: dict[str, Inode] = field(default_factory=dict)


def folder(mode: int = 0o755, layer: int = 0) -> Inode:
    """Return a new folder of root's."""
    return Inode(Kind.FOLDER, mode, layer=layer)


class Tree:
    """A root and all below it."""

    def __init__(self) -> None:
        self.root = folder()

    def put(self, name: str, inode: Inode) -> None:
        """Give a file a name; what has it goes, but a folder over a folder keeps what is in it.

        Raises:
            TreeError: the name leads nowhere.
        """
        parent, last = self._place(name, inode.layer)
        if not last:
            self._change(self.root, inode)
            return
        known = parent.children.get(last)
        if known is not None and known.kind is inode.kind is Kind.FOLDER:
            self._change(known, inode)
        else:
            parent.children[last] = inode

    def find(self, name: str) -> Inode:
        """Return the file of a name; a link at its end is not followed.

        Raises:
            TreeError: there is none.
        """
        *parts, last = _parts(name) or [""]
        parent = self._walk(parts, name)
        if not last:
            return self.root
        if last not in parent.children:
            raise TreeError(f"{name!r} is not there")
        return parent.children[last]

    def remove(self, name: str) -> None:
        """Take a name away, with all below it, if it is there."""
        try:
            parent = self._walk(_parts(name)[:-1], name)
        except TreeError:
            return
        parent.children.pop(posixpath.basename(name), None)

    def hide(self, name: str, layer: int) -> None:
        """Take away what a folder has of layers below this one."""
        try:
            self._prune(self._walk(_parts(name), name), layer)
        except TreeError:
            return

    def files(self) -> Iterator[tuple[str, Inode]]:
        """Yield every name but the root's, without a slash in front: folders before what is in them, in order."""
        waiting = [("", self.root)]
        while waiting:
            above, inode = waiting.pop()
            for name in sorted(inode.children):
                child, path = inode.children[name], f"{above}{name}"
                yield path, child
                if child.kind is Kind.FOLDER:
                    waiting.append((f"{path}/", child))

    @staticmethod
    def _change(known: Inode, new: Inode) -> None:
        known.mode, known.uid, known.gid = new.mode, new.uid, new.gid
        known.mtime_s, known.layer = new.mtime_s, new.layer

    def _place(self, name: str, layer: int) -> tuple[Inode, str]:
        """Return the folder that a name is in, made if missing, and the name's last part; "" for the root."""
        parts = _parts(name)
        if not parts:
            return self.root, ""
        return self._walk(parts[:-1], name, layer), parts[-1]

    def _walk(self, parts: list[str], name: str, missing: int | None = None) -> Inode:
        """Return the folder that these parts lead to.

        Args:
            parts: below the root.
            name: for the message.
            missing: the layer of folders that are made where they are missing; None to make none.
        """
        waiting, above, links = list(reversed(parts)), [self.root], 0
        while waiting:
            part = waiting.pop()
            if part == "..":
                above = above[:-1] or above
                continue
            found = above[-1].children.get(part)
            if found is None and missing is not None:
                found = above[-1].children[part] = folder(layer=missing)
            if found is None:
                raise TreeError(f"{name!r} is not there")
            if found.kind is Kind.LINK:
                links += 1
                if links > _MOST_LINKS:
                    raise TreeError(f"{name!r} leads through too many links")
                if found.target.startswith("/"):
                    above = [self.root]
                waiting += reversed([each for each in found.target.split("/") if each not in ("", ".")])
            elif found.kind is Kind.FOLDER:
                above.append(found)
            else:
                raise TreeError(f"{name!r} lies below a file")
        return above[-1]

    def _prune(self, parent: Inode, layer: int) -> None:
        # Not by recursion: a stranger says how deep it goes.
        order, waiting = [], [parent]
        while waiting:
            each = waiting.pop()
            order.append(each)
            waiting += [child for child in each.children.values() if child.kind is Kind.FOLDER]
        for each in reversed(order):
            each.children = {
                name: child for name, child in each.children.items() if child.layer == layer or child.children
            }


def _parts(name: str) -> list[str]:
    """Return a name's parts below the root; `..` takes away what is before it."""
    return [part for part in posixpath.normpath(f"/{name}").split("/") if part]
