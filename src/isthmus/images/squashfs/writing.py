"""A squashfs from a tree: its blocks, then its tables, then the superblock that says where these are.

A directory comes after what it lists, since it names where that lies; so directories are numbered from the root
down and written from the bottom up.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import closing
from typing import BinaryIO

from isthmus.images.squashfs import directories, tables
from isthmus.images.squashfs.blocks import SIZE, Blocks, Fragment, Packer
from isthmus.images.squashfs.copying import Copied, Origin
from isthmus.images.squashfs.directories import Listing, Name
from isthmus.images.squashfs.tables import Table
from isthmus.images.tree import Inode, Kind, Source, Tree

_MAGIC, _VERSION, _ZSTD = 0x73717368, (4, 0), 6
_EXPORTABLE, _NO_XATTRS = 1 << 7, 1 << 9
_NOTHING = (1 << 64) - 1
_SUPERBLOCK = struct.Struct("<5I6H8Q")
# Block devices are read in such units.
_PADDED = 4096
_MOST_IDS = (1 << 16) - 1
_KINDS = {Kind.FOLDER: 1, Kind.FILE: 2, Kind.LINK: 3, Kind.FIFO: 6}
# An inode that has more than the basic one of its kind.
_EXTENDED = 7
_NO_XATTR = (1 << 32) - 1
# Nothing looks at it, but Linux shows no other (symlink(7)).
_LINK_MODE = 0o777


class TooManyIdsError(ValueError):
    """A tree with more owners than a squashfs has."""


def write(tree: Tree, origins: Mapping[int, Origin], out: BinaryIO, wanted: Callable[[], None]) -> None:
    """Write a squashfs; equal trees give equal files.

    Args:
        tree: of files that have blocks, or a source to be compressed here.
        origins: who has these blocks, by the numbers of layers.
        out: empty.
        wanted: called now and then; raises where nobody waits for it any more.

    Raises:
        TooManyIdsError: it has more than 65,535 owners and groups.
        OSError: content cannot be read, or `out` written.
    """
    files = list(dict.fromkeys(inode for _, inode in tree.files() if inode.kind is Kind.FILE))
    kept = [inode.blocks for inode in files if inode.blocks]
    copied = Copied(origins, kept, out.fileno(), _SUPERBLOCK.size, wanted)
    out.seek(copied.position)
    with closing(Packer(out, wanted, copied.fragments)) as packer:
        placed = {
            inode: copied.moved(inode.blocks) if inode.blocks else _packed(inode.source, packer) for inode in files
        }
        packer.finish()
    _Tables(tree.root, placed, wanted).write(out, packer.fragments)


def _packed(source: Source | None, packer: Packer) -> Blocks:
    return packer.add(source.path, source.offset, source.size) if source else Blocks(0)


class _Tables:
    def __init__(self, root: Inode, placed: Mapping[Inode, Blocks], wanted: Callable[[], None]) -> None:
        self._root, self._placed, self._wanted = root, placed, wanted
        self._inodes, self._folders = Table(), Table()
        self._ids: dict[int, int] = {}
        self._numbers, self._links, self._parents = {root: 1}, Counter[Inode](), dict[Inode, Inode]()
        self._places: dict[Inode, tuple[int, int]] = {}
        self._order = [root]
        self._number()

    def write(self, out: BinaryIO, fragments: list[Fragment]) -> None:
        """Write the tables after the blocks, and the superblock before them."""
        for count, folder in enumerate(reversed(self._order)):
            if count % 1000 == 0:
                self._wanted()
            self._folder(folder)
        inodes_at = out.tell()
        out.write(self._inodes.finish())
        folders_at = out.tell()
        out.write(self._folders.finish())
        fragments_at = tables.write_list(out, [struct.pack("<QII", each.start, each.word, 0) for each in fragments])
        places = sorted((self._numbers[inode], _reference(place)) for inode, place in self._places.items())
        exported_at = tables.write_list(out, [struct.pack("<Q", reference) for _, reference in places])
        ids_at = tables.write_list(out, [struct.pack("<I", each) for each in self._ids])
        size = out.tell()
        out.write(bytes(-size % _PADDED))
        counts = len(places), 0, SIZE, len(fragments)
        words = _ZSTD, SIZE.bit_length() - 1, _EXPORTABLE | _NO_XATTRS, len(self._ids), *_VERSION
        at = ids_at, _NOTHING, inodes_at, folders_at, fragments_at, exported_at
        out.seek(0)
        out.write(_SUPERBLOCK.pack(_MAGIC, *counts, *words, _reference(self._places[self._root]), size, *at))
        out.flush()

    def _number(self) -> None:
        """Number all inodes, the root first, and count their names."""
        waiting = [self._root]
        while waiting:
            folder = waiting.pop()
            for child in folder.children.values():
                self._numbers.setdefault(child, len(self._numbers) + 1)
                self._links[child] += 1
                if child.kind is Kind.FOLDER:
                    self._parents[child] = folder
                    self._order.append(child)
                    waiting.append(child)

    def _folder(self, folder: Inode) -> None:
        names = []
        for name, child in sorted((name.encode(errors="surrogateescape"), name) for name in folder.children):
            inode = folder.children[child]
            if inode not in self._places:
                self._put(inode, *self._body(inode))
            names.append(Name(name, _KINDS[inode.kind], self._numbers[inode], self._places[inode]))
        subfolders = sum(inode.kind is Kind.FOLDER for inode in folder.children.values())
        listing = directories.write(self._folders, names)
        self._put(folder, *self._listed(folder, listing, 2 + subfolders))

    def _listed(self, folder: Inode, listing: Listing, links: int) -> tuple[bool, bytes]:
        """Return whether a directory's inode is an extended one, and its body."""
        block, offset = listing.place
        above = self._parents.get(folder)
        parent = self._numbers[above] if above else len(self._numbers) + 1
        # With what is not in the list: the folder itself, and the one above.
        size = listing.size + 3
        if size < 1 << 16 and not listing.index:
            return False, struct.pack("<IIHHI", block, links, size, offset, parent)
        head = struct.pack("<IIIIHHI", links, size, block, parent, len(listing.index), offset, _NO_XATTR)
        return True, head + b"".join(listing.index)

    def _body(self, inode: Inode) -> tuple[bool, bytes]:
        links = self._links[inode]
        if inode.kind is Kind.FIFO:
            return False, struct.pack("<I", links)
        if inode.kind is Kind.LINK:
            target = inode.target.encode(errors="surrogateescape")
            return False, struct.pack("<II", links, len(target)) + target
        blocks = self._placed[inode]
        words = struct.pack(f"<{len(blocks.words)}I", *blocks.words)
        place = blocks.fragment, blocks.offset
        if links == 1 and max(blocks.start, blocks.size) < 1 << 32:
            return False, struct.pack("<IIII", blocks.start, *place, blocks.size) + words
        return True, struct.pack("<QQQIIII", blocks.start, blocks.size, 0, links, *place, _NO_XATTR) + words

    def _put(self, inode: Inode, is_extended: bool, body: bytes) -> None:
        kind = _KINDS[inode.kind] + (_EXTENDED if is_extended else 0)
        owner = self._id(inode.uid), self._id(inode.gid)
        self._places[inode] = self._inodes.position
        mode = _LINK_MODE if inode.kind is Kind.LINK else inode.mode
        head = struct.pack("<HHHHII", kind, mode, *owner, inode.mtime_s, self._numbers[inode])
        self._inodes.add(head + body)

    def _id(self, number: int) -> int:
        if number not in self._ids and len(self._ids) == _MOST_IDS:
            raise TooManyIdsError(f"it has more than {_MOST_IDS} owners and groups")
        return self._ids.setdefault(number, len(self._ids))


def _reference(place: tuple[int, int]) -> int:
    """Return an inode's place in one number."""
    block, offset = place
    return block << 16 | offset
