"""What Apptainer writes into an unpacked image must lie in it.

Apptainer 1.4 follows links that the image brought. Where it unpacks nothing else can be written
(`isthmus.clients.confined`), so that a link out of the image makes it fail. Looked at here is what remains: a link to
something that can be opened for writing everywhere, as /dev/null is. Only the files that Apptainer writes are looked
at, and only where they lead: honest images have absolute links in plenty, and links within the image do no harm.

It is done on the unpacked folder and not on the layers, because reading those means unpacking them a second time.
"""

from __future__ import annotations

import os
from pathlib import Path

from isthmus.images.errors import HostileImageError, outside
from isthmus.model.images import Reference

_ACTIONS = ("exec", "run", "shell", "start", "test")
_ENVIRONMENT = (
    "01-base.sh",
    "10-docker2singularity.sh",
    "90-environment.sh",
    "94-appsbase.sh",
    "95-apps.sh",
    "99-base.sh",
    "99-runtimevars.sh",
)
# As `apptainer build --sandbox` of 1.4.5 leaves them in an image that has nothing.
WRITTEN = (
    "etc/hosts",
    "etc/resolv.conf",
    ".singularity.d/libs",
    *(f".singularity.d/actions/{name}" for name in _ACTIONS),
    *(f".singularity.d/env/{name}" for name in _ENVIRONMENT),
    *(f".singularity.d/{name}" for name in ("Singularity", "labels.json", "runscript", "startscript")),
)


def check(image: Reference, root: Path) -> None:
    """Look at what was unpacked.

    Args:
        image: for the message.
        root: its folder.

    Raises:
        HostileImageError: something that Apptainer wrote does not lie in it.
    """
    top = os.path.realpath(root)
    for name in WRITTEN:
        if not os.path.realpath(f"{top}/{name}").startswith(f"{top}/"):
            raise HostileImageError(outside(image, name))
