"""An image of layers that are there, and of those that are downloaded for it and stay.

    manifest -> which layers are there? -> the others: lock, download, one file each -> one tree -> squashfs

A layer that is missing is another pull's to bring where that has begun: its lock is waited for, and all locks are taken
in the order of digests, so that two pulls never wait for one another. What is there skopeo does not download, for the
layout that it copies to has a file of that name already.
"""

from __future__ import annotations

import errno
import gzip
import hashlib
import tarfile
import threading
import zlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, cast

from backports import zstd

from isthmus.clients import skopeo
from isthmus.images import archive, base, manifests
from isthmus.images.errors import FULL, HostileImageError
from isthmus.images.layers import reading
from isthmus.images.squashfs import writing
from isthmus.images.store.keeping import Store
from isthmus.images.store.packing import Layer
from isthmus.images.workspace import Progress, Workspace
from isthmus.model.images import Reference

_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
# skopeo unpacks these, too (bzip2 and xz).
_UNUSUAL = (b"BZh", b"\xfd7zXZ\0")
_MAGIC_BYTES = 6
_CHUNK = 1 << 20


class NotKeptError(Exception):
    """Layers that cannot stay; the image can be made without."""


def make(
    image: Reference, digests: Sequence[str], target: Path, folder: Path, workspace: Workspace, progress: Progress
) -> None:
    """Make an image.

    Args:
        image: which one.
        digests: of its layers, as far as they are known.
        target: where the squashfs is written; nothing is there yet.
        folder: for what is needed meanwhile; empty.
        workspace: where layers stay.
        progress: takes a word on what is being done.

    Raises:
        NotKeptError: its layers cannot be kept.
        ImageError: it could not be had.
        ProcessError, OSError: as `errors` translates them.
    """
    # skopeo takes what comes after a colon for a name.
    if ":" in str(folder):
        raise NotKeptError(f"{folder} has a colon in its name")
    with ExitStack() as stack:
        layers = _Layers(image, folder, workspace, stack)
        with layers.found(digests, progress):
            progress("downloading")
            skopeo.layout(image, folder / "image", layers.digests, workspace.authfile, workspace.unwanted)
            parts = manifests.layout(image, folder / "image")
            config = manifests.config(image, parts.config.read_text(errors="replace"))
            progress("unpacking")
            work = _beside(lambda unwanted: base.make(config, workspace.arch, folder, unwanted), workspace)
            made = stack.enter_context(work)
            used = {number: layers.get(number, blob) for number, blob in enumerate(parts.layers, start=1)}
        entries = (layer.entries(number) for number, layer in used.items())
        tree = base.completed(image, entries, made, workspace, progress)
        progress("packing")
        origins = {number: layer.origin for number, layer in used.items()}
        with layers.room(), target.open("xb") as out:
            try:
                writing.write(tree, origins, out, workspace.check)
            except writing.TooManyIdsError as error:
                raise HostileImageError(f"{image} is refused: {error}; ask the image's author") from error


class _Layers:
    """The layers of an image, open.

    Args:
        image: for messages.
        folder: for what is needed meanwhile.
        workspace: where layers stay.
        opened: closes them.
    """

    def __init__(self, image: Reference, folder: Path, workspace: Workspace, opened: ExitStack) -> None:
        self._image, self._folder, self._workspace, self._opened = image, folder, workspace, opened
        self._store = Store(workspace.cache)
        self._open: dict[str, Layer] = {}
        self._alone: dict[str, bool] = {}

    @property
    def digests(self) -> set[str]:
        """Which are there."""
        return set(self._open)

    @contextmanager
    def found(self, digests: Sequence[str], progress: Progress) -> Iterator[None]:
        """Open those that are there, and hold the locks of the others while the block runs."""
        with ExitStack() as locks:
            for digest in sorted(set(digests)):
                if not self._find(digest):
                    lock = self._store.lock(digest, lambda: progress("waiting for another pull of a layer of"))
                    self._alone[digest] = locks.enter_context(lock)
                    self._find(digest)
            yield

    def get(self, number: int, blob: Path) -> Layer:
        """Return a layer; one that is not there is kept.

        Args:
            number: of the layer, for messages.
            blob: what was downloaded, called by the digits of its digest.

        Raises:
            HostileImageError: it is no layer.
            NotKeptError: it cannot be kept.
            OSError: it cannot be read.
        """
        digest = f"sha256:{blob.name}"
        if not self._find(digest):
            with reading(self._image, number):
                plain = _plain(blob, self._folder / "layer.tar", digest, self._workspace.check)
                entries = archive.entries(plain)
                with self.room():
                    layer = self._store.add(
                        digest, entries, self._workspace.check, alone=self._alone.get(digest, False)
                    )
            self._keep(digest, layer)
            plain.unlink()
        return self._open[digest]

    @contextmanager
    def room(self) -> Iterator[None]:
        """Give up all layers where there is no room for what the block writes, or where another node removed one."""
        try:
            yield
        except OSError as error:
            if error.errno == errno.ESTALE:
                raise NotKeptError("one went meanwhile") from error
            if error.errno not in FULL:
                raise
            self._store.clear()
            raise NotKeptError("no room is left for its layers") from error

    def _find(self, digest: str) -> bool:
        if digest not in self._open and (layer := self._store.find(digest)):
            self._keep(digest, layer)
        return digest in self._open

    def _keep(self, digest: str, layer: Layer) -> None:
        self._opened.callback(layer.close)
        self._open[digest] = layer


@contextmanager
def _beside(work: Callable[[Callable[[], bool]], Path], workspace: Workspace) -> Iterator[Callable[[], Path]]:
    """Do work in a thread, beside the block; where the block fails, nobody wants it any more."""
    failed = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(work, lambda: failed.is_set() or workspace.unwanted())
        try:
            yield done.result
        except BaseException:
            failed.set()
            raise


def _plain(blob: Path, tar: Path, digest: str, wanted: Callable[[], None]) -> Path:
    """Return a layer's plain tar file.

    Args:
        blob: as it was downloaded.
        tar: where to unpack one that is compressed.
        digest: of the blob.
        wanted: called now and then.

    Raises:
        NotKeptError: its compression is unusual.
        tarfile.TarError: it cannot be unpacked.
        OSError: it is not what its digest says, or cannot be read, or `tar` not written.
    """
    with blob.open("rb") as file:
        if f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}" != digest:
            raise OSError(errno.EIO, "it is not what its digest says", str(blob))
        file.seek(0)
        magic = file.read(_MAGIC_BYTES)
    if magic.startswith(_UNUSUAL):
        raise NotKeptError("its layers are compressed in a way that is seldom seen")
    if not magic.startswith((_GZIP, _ZSTD)):
        return blob.rename(tar)
    with (gzip.open if magic.startswith(_GZIP) else zstd.open)(blob, "rb") as source, tar.open("wb") as out:
        while content := _read(cast("IO[bytes]", source)):
            out.write(content)
            wanted()
    blob.unlink()
    return tar


def _read(source: IO[bytes]) -> bytes:
    try:
        return source.read(_CHUNK)
    except (gzip.BadGzipFile, zlib.error, EOFError, zstd.ZstdError) as error:
        raise tarfile.ReadError(str(error)) from error
