"""A tree as a tar stream, for what packs it; content goes from file to pipe without being read here (sendfile(2))."""

from __future__ import annotations

import os
import tarfile
from collections.abc import Callable
from contextlib import ExitStack

from isthmus.images.tree import Inode, Kind, Source, Tree

_TYPES = {
    Kind.FILE: tarfile.REGTYPE,
    Kind.FOLDER: tarfile.DIRTYPE,
    Kind.LINK: tarfile.SYMTYPE,
    Kind.FIFO: tarfile.FIFOTYPE,
}
_BLOCK = 512
# Headers of so many bytes go out at once.
_GATHERED = 1 << 16


def write(tree: Tree, pipe: int, wanted: Callable[[], None]) -> None:
    """Write a tree without its root.

    Args:
        tree: what is written.
        pipe: a descriptor; blocking.
        wanted: called now and then; raises where nobody waits for it any more.

    Raises:
        OSError: content cannot be read, or nobody reads the pipe.
    """
    with ExitStack() as files:
        writer = _Writer(pipe, files)
        for number, (name, inode) in enumerate(tree.files()):
            if number % 1000 == 0:
                wanted()
            writer.add(name, inode)
        writer.end()


class _Writer:
    def __init__(self, pipe: int, files: ExitStack) -> None:
        self._pipe, self._files = pipe, files
        self._open: dict[str, int] = {}
        self._named: dict[Inode, str] = {}
        self._gathered = bytearray()

    def add(self, name: str, inode: Inode) -> None:
        """Write one file; a further name of one that is written already is a link to it."""
        header = tarfile.TarInfo(name)
        header.mode, header.uid, header.gid, header.mtime = inode.mode, inode.uid, inode.gid, inode.mtime_s
        header.type, header.linkname = _TYPES[inode.kind], inode.target
        source = inode.source
        if first := self._named.get(inode):
            header.type, header.linkname, source = tarfile.LNKTYPE, first, None
        elif inode.kind is not Kind.FOLDER:
            self._named[inode] = name
        header.size = source.size if source else 0
        self._gathered += header.tobuf(tarfile.GNU_FORMAT, "utf-8", "surrogateescape")
        if source and source.size:
            self._content(source)
        elif len(self._gathered) >= _GATHERED:
            self._flush()

    def end(self) -> None:
        """Write what ends an archive."""
        self._gathered += bytes(2 * _BLOCK)
        self._flush()

    def _content(self, source: Source) -> None:
        self._flush()
        descriptor, offset, left = self._descriptor(source.path), source.offset, source.size
        while left:
            sent = os.sendfile(self._pipe, descriptor, offset, left)
            if not sent:
                raise OSError(f"{source.path} ended too early")
            offset, left = offset + sent, left - sent
        self._gathered += bytes(-source.size % _BLOCK)

    def _descriptor(self, path: str) -> int:
        if path not in self._open:
            self._open[path] = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            self._files.callback(os.close, self._open[path])
        return self._open[path]

    def _flush(self) -> None:
        left = memoryview(bytes(self._gathered))
        while left:
            left = left[os.write(self._pipe, left) :]
        self._gathered.clear()
