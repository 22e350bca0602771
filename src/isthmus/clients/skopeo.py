"""skopeo: manifests and blobs of images, from registries and archives (skopeo(1)).

An OCI archive is a tar that skopeo unpacks through whatever links lie in it, so this is done confined.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from tempfile import TemporaryDirectory

from isthmus.clients import confined, process
from isthmus.model.images import Reference, Transport

# A registry that has not sent a manifest by then is as good as dead; a layer may take long.
MANIFEST_TIMEOUT_S = 60
# One that sends less than this in such a time has stalled: a gigabyte would take a week.
STALL_S = 60.0
LEAST_BYTES = 64 << 10


def manifest(image: Reference, authfile: Path | None, scratch: Path) -> str:
    """Return an image's manifest, or its index of manifests, as the registry has it.

    Args:
        image: which one.
        authfile: credentials.
        scratch: where an archive may be unpacked.

    Raises:
        ProcessError: skopeo could not get it.
    """
    return _inspect(image, ["--raw"], authfile, scratch)


def config(image: Reference, authfile: Path | None, scratch: Path) -> str:
    """Return an image's configuration for this machine, as the registry has it (OCI image specification, config).

    Args:
        image: which one.
        authfile: credentials.
        scratch: where an archive may be unpacked.

    Raises:
        ProcessError: skopeo could not get it.
    """
    return _inspect(image, ["--config", "--raw"], authfile, scratch)


def copy(
    image: Reference,
    folder: Path,
    authfile: Path | None,
    unwanted: Callable[[], bool] = process.never,
    stall_s: float = STALL_S,
) -> None:
    """Copy an image into a new folder: `manifest.json`, blobs by the hex digits of their digests, layers as plain tar.

    Raises:
        StalledError: the registry sends next to nothing, or nobody wants the image any more.
        ProcessError: skopeo could not.
    """
    patience = process.Patience(stall_s, LEAST_BYTES, lambda: process.folder_bytes(folder), unwanted)
    verb = ["copy", "--quiet", "--dest-decompress"]
    _run(verb, image, authfile, folder.parent, patience, f"dir:{folder}")


def layout(
    image: Reference,
    folder: Path,
    there: Iterable[str],
    authfile: Path | None,
    unwanted: Callable[[], bool] = process.never,
    stall_s: float = STALL_S,
) -> None:
    """Copy an image into a new OCI layout, its layers as they come.

    Args:
        image: which one.
        folder: the layout, without a colon in its name.
        there: digests of layers that are not downloaded; their blobs are empty.
        authfile: credentials.
        unwanted: whether nobody wants the image any more.
        stall_s: in each such time LEAST_BYTES must come.

    Raises:
        StalledError: the registry sends next to nothing, or nobody wants the image any more.
        ProcessError: skopeo could not.
    """
    blobs = folder / "blobs/sha256"
    blobs.mkdir(parents=True)
    for digest in there:
        # skopeo takes what has a blob's name for the blob, and leaves it alone.
        (blobs / digest.partition(":")[2]).touch()
    patience = process.Patience(stall_s, LEAST_BYTES, lambda: process.folder_bytes(folder), unwanted)
    # Otherwise it compresses what comes uncompressed, and calls it by another digest.
    verb = ["copy", "--quiet", "--dest-oci-accept-uncompressed-layers"]
    _run(verb, image, authfile, folder.parent, patience, f"oci:{folder}:image")


def _inspect(image: Reference, options: list[str], authfile: Path | None, scratch: Path) -> str:
    if image.transport != Transport.OCI_ARCHIVE:
        return _run(["inspect", *options], image, authfile, scratch, MANIFEST_TIMEOUT_S)
    scratch.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=scratch, prefix=".isthmus-pull.") as folder:
        return _run(["inspect", *options], image, authfile, Path(folder), MANIFEST_TIMEOUT_S)


def _run(
    verb: list[str],
    image: Reference,
    authfile: Path | None,
    folder: Path,
    patience: process.Patience | float,
    *target: str,
) -> str:
    credentials = [f"--authfile={authfile}"] if authfile else []
    argv = ["skopeo", *verb, *credentials, str(image), *target]
    if image.transport == Transport.OCI_ARCHIVE:
        path, colon, name = image.place.partition(":")
        source = os.path.realpath(path)
        # For what is large it does not look at TMPDIR.
        argv = ["skopeo", f"--tmpdir={folder}", *verb, f"{image.transport}:{source}{colon}{name}", *target]
        argv = confined.command(str(folder), argv, source)
    environment = {"TMPDIR": str(folder)}
    if isinstance(patience, process.Patience):
        return process.run_patiently(argv, patience, environment).stdout
    return process.run(argv, timeout_s=patience, environment=environment).stdout
