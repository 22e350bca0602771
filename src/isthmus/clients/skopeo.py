"""skopeo: manifests and blobs of images, from registries and archives (skopeo(1))."""

from __future__ import annotations

from pathlib import Path

from isthmus.clients import process
from isthmus.model.images import Reference

# A registry that has not sent a manifest by then is as good as dead; a layer may take long.
MANIFEST_TIMEOUT_S = 60


def manifest(image: Reference, authfile: Path | None) -> str:
    """Return an image's manifest, or its index of manifests, as the registry has it.

    Raises:
        ProcessError: skopeo could not get it.
    """
    argv = ["skopeo", "inspect", "--raw", *_credentials(authfile), str(image)]
    return process.run(argv, timeout_s=MANIFEST_TIMEOUT_S).stdout


def config(image: Reference, authfile: Path | None) -> str:
    """Return an image's configuration for this machine, as the registry has it (OCI image specification, config).

    Raises:
        ProcessError: skopeo could not get it.
    """
    argv = ["skopeo", "inspect", "--config", "--raw", *_credentials(authfile), str(image)]
    return process.run(argv, timeout_s=MANIFEST_TIMEOUT_S).stdout


def copy(image: Reference, layout: Path, authfile: Path | None) -> None:
    """Copy an image into a new OCI layout.

    Raises:
        ProcessError: skopeo could not.
    """
    argv = ["skopeo", "copy", "--quiet", *_credentials(authfile), str(image), f"oci:{layout}:image"]
    process.run(argv, environment={"TMPDIR": str(layout.parent)})


def _credentials(authfile: Path | None) -> list[str]:
    return [f"--authfile={authfile}"] if authfile else []
