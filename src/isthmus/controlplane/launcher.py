"""Command lines of the image's programs: in Apptainer, or directly from a folder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from isthmus.controlplane.data.node_disk import Disk
from isthmus.controlplane.layout import Layout

# Where the image has its programs, and where they see the cluster's files and its folder on the node's disk; all are
# folders of the image.
PROGRAMS = Path("/usr/local/bin")
SEEN = Path("/cluster")
SEEN_DISK = Path("/disk")

Launch = Callable[[str, Sequence[str], str], list[str]]
"""(program, arguments, memory limit) -> argv."""

See = Callable[[Path], Path]
"""A file of the cluster -> where programs see it."""


def in_container(image: Path, layout: Layout, disk: Disk | None = None) -> Launch:
    """Start programs in the image: nothing of the host but the cluster's files and the network."""

    def launch(program: str, arguments: Sequence[str], memory: str) -> list[str]:
        inside = ["--containall", "--no-home", "--pwd", "/", "--bind", f"{layout.folder}:{SEEN}"]
        inside += ["--bind", f"{disk.folder}:{SEEN_DISK}"] if disk else []
        limits = ["--env", f"GOMEMLIMIT={memory}"]
        return ["apptainer", "--quiet", "exec", *inside, *limits, str(image), str(PROGRAMS / program), *arguments]

    return launch


def seen_in_container(layout: Layout, disk: Disk | None = None) -> See:
    """Return where programs of the image see files."""

    def see(path: Path) -> Path:
        if disk is not None and path.is_relative_to(disk.folder):
            return SEEN_DISK / path.relative_to(disk.folder)
        return SEEN / path.relative_to(layout.folder)

    return see


def from_folder(folder: Path) -> Launch:
    """Start programs as they are, for tests and for sites without user namespaces."""

    def launch(program: str, arguments: Sequence[str], memory: str) -> list[str]:
        return ["env", f"GOMEMLIMIT={memory}", str(folder / program), *arguments]

    return launch
