"""What the supervisor knows of a kind of volumes: where its files are, how they are made, and who may see them.

To add one, write `<kind>.py` here with a KIND; the module's name is the word of the plan (`Volume.kind`). Which kinds
of Kubernetes become it, the kubelet says in its own `volumes`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from isthmus.podproto.plan import Mount, Volume

if TYPE_CHECKING:
    from isthmus.supervisor.runtime.sandbox import Pod
    from isthmus.supervisor.volumes.mounts import Folders


class VolumeError(Exception):
    """A volume cannot be what the pod wants it to be."""


class Kind:
    """A kind of volumes.

    Attributes:
        is_read_only: no container may write it.
        is_fixed: nothing can be made in it, so a part of it must be there already.
        is_on_all_nodes: the tasks of an MPI program see it on other nodes, too.
    """

    is_read_only = False
    is_fixed = False
    is_on_all_nodes = False

    def place(self, folders: Folders, volume: Volume) -> Path:
        """Return where its files are."""
        raise NotImplementedError

    def make(self, folders: Folders, volume: Volume) -> None:
        """Make it.

        Raises:
            OSError: the kernel or the disk refuses.
            VolumeError: it cannot be what the plan says.
        """
        raise NotImplementedError

    def update(self, folders: Folders, volume: Volume) -> None:
        """Give it new content, where that can change."""

    async def serve(self, pod: Pod, volume: Volume) -> None:
        """Start what must run so that its files can be seen.

        Raises:
            StartError: it cannot; the message names the volume.
        """

    def rank_mount(self, mount: Mount, volume: Volume) -> str:
        """Return how a task of an MPI program mounts it on any node, if it is on all.

        Raises:
            StartError: not so.
        """
        raise NotImplementedError
