"""Apptainer: turns an image into a folder, without root, and without a right to write elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from isthmus.clients import confined, process

# The largest images take some minutes.
LONGEST_S = 3600.0


def unpack(layout: Path, folder: Path, unwanted: Callable[[], bool] = process.never) -> None:
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
    patience = process.Patience(LONGEST_S, unwanted=unwanted)
    process.run_patiently(confined.command(scratch, argv), patience, places)
