"""Apptainer: turns an image into a folder, without root, and without a right to write elsewhere."""

from __future__ import annotations

from pathlib import Path

from isthmus.clients import confined, process


def unpack(layout: Path, folder: Path) -> None:
    """Unpack an OCI layout with one image; environment and entrypoint lie in `.singularity.d` of the new folder.

    Every file belongs to the caller, who may read and remove it. Apptainer can write to the folder above the new
    one, and nowhere else.

    Raises:
        ProcessError: Apptainer could not, or cannot be kept from writing elsewhere (status `confined.STATUS`).
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
    scratch = str(folder.parent)
    # All that Apptainer would look for, or keep, in the home.
    places = dict.fromkeys(("APPTAINER_TMPDIR", "APPTAINER_CACHEDIR", "APPTAINER_CONFIGDIR", "TMPDIR"), scratch)
    process.run(confined.command(scratch, argv), environment=places)
