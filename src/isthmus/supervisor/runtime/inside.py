"""Static programs that run in containers of any image, also of one without a shell; src/spank/hold has their source.

They are built beside Slurm's plugin and lie on each node where that lies (role network): `hold` keeps a container's
namespaces open, `proxy` stands in a container for a program that runs elsewhere (`ranks`).
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

FOLDER = Path("/usr/lib/isthmus")
HOLD, PROXY = "isthmus_hold", "isthmus_proxy"
# Where containers see what `proxy` needs: itself, and the socket that it asks by.
RANKS = "/.isthmus/ranks"
START = f"{RANKS}/start"
SOCKET = "ask"
STREAMS = 3


def find(name: str) -> Path:
    """Return where a program lies on this node.

    Raises:
        OSError: it has none, with the remedy.
    """
    path = FOLDER / name
    if not os.access(path, os.X_OK):
        raise OSError(f"this node has no {path}; an admin runs playbooks/network.yml")
    return path


def copy(name: str, path: Path) -> None:
    """Copy a program to a folder that a container sees.

    Raises:
        OSError: the node has none, with the remedy, or it cannot be written.
    """
    shutil.copyfile(find(name), path)
    path.chmod(0o755)
