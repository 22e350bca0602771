"""mksquashfs: an archive as one compressed file that starts without being unpacked."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from isthmus.clients import process

# Higher levels take longer and gain little: 3 is as fast as 1, and a twentieth smaller.
LEVEL = 3
# By default it takes a quarter of the machine, which a job does not have.
MEMORY_MIB = 256
# A home that takes nothing for so long is not waited for.
STALL_S = 300.0


def pack(feed: Callable[[int], None], mode: int, file: Path, unwanted: Callable[[], bool] = process.never) -> None:
    """Write a new squashfs of a tar stream, with its owners and modes and without extended attributes.

    Args:
        feed: writes the stream to the descriptor it is given; its errors come out of here.
        mode: of the root, which a stream cannot say; it is root's.
        file: where nothing is yet.
        unwanted: whether nobody waits for it any more.

    Raises:
        ProcessError: mksquashfs could not.
    """
    compression = ["-comp", "zstd", "-Xcompression-level", str(LEVEL)]

    def file_bytes() -> int:
        return file.stat().st_size if file.exists() else 0

    limits = ["-processors", str(len(os.sched_getaffinity(0))), "-mem", f"{MEMORY_MIB}M"]
    patience = process.Patience(STALL_S, 1, file_bytes, unwanted)
    # sqfstar of 4.5 does not take a level of compression.
    words = ["mksquashfs", "-", str(file), "-tar", "-noappend", "-no-xattrs", "-no-progress", "-quiet"]
    process.run_patiently([*words, "-root-mode", f"{mode:o}", *compression, *limits], patience, {}, feed)


def read(file: Path, path: str) -> str:
    """Return the text of a small file in a squashfs; empty where there is none.

    Args:
        file: the squashfs.
        path: below its root, without a slash in front.
    """
    try:
        return process.run(["unsquashfs", "-no-progress", "-cat", file, path], timeout_s=60).stdout
    except process.ProcessError as error:
        # unsquashfs ends so for a path that is not there, too.
        if error.status is None:
            raise
        return ""
