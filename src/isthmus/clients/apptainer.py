"""Apptainer: turns an image into a folder, without root."""

from __future__ import annotations

from pathlib import Path

from isthmus.clients import process


def unpack(layout: Path, folder: Path) -> None:
    """Unpack an OCI layout with one image; environment and entrypoint lie in `.singularity.d` of the new folder.

    Every file belongs to the caller, and he may read and remove it.

    Raises:
        ProcessError: Apptainer could not.
    """
    argv = [
        "apptainer",
        "--quiet",
        "build",
        "--disable-cache",
        "--fix-perms",
        "--sandbox",
        str(folder),
        f"oci:{layout}",
    ]
    process.run(argv, environment={"APPTAINER_TMPDIR": str(folder.parent)})
