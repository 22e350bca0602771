"""image: the files of an image, shown in a folder of the pod, whence containers mount them like all others.

The kernel mounts no squashfs for one who is root in a user namespace only, so a process of the pod serves each image,
as Apptainer has one serve a container's root. It is the pod's, not a container's: it ends with the pod.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
from pathlib import Path

from isthmus.podproto.plan import Mount, Volume
from isthmus.supervisor.containers import outputs
from isthmus.supervisor.runtime.processes import Program, StartError, read_all
from isthmus.supervisor.runtime.sandbox import START_S, STOP_S, Pod, bind, environment
from isthmus.supervisor.volumes.kind import Kind
from isthmus.supervisor.volumes.mounts import IMAGE_SERVERS, Folders

# As Kubernetes promises: never written, nothing executed; owners and modes are the image's.
_OPTIONS = "ro,noexec,nosuid,nodev,allow_other,default_permissions"


class Image(Kind):
    """The files of an image."""

    is_read_only = is_fixed = is_on_all_nodes = True

    def place(self, folders: Folders, volume: Volume) -> Path:
        """Return where they are shown."""
        return folders.images / volume.name

    def make(self, folders: Folders, volume: Volume) -> None:
        """Make the folder."""
        self.place(folders, volume).mkdir(parents=True)

    async def serve(self, pod: Pod, volume: Volume) -> None:
        """Show them in it."""
        status, said = await _run(pod, command(pod.folders, volume))
        if status:
            raise StartError(f"volume {volume.name}: {volume.path} cannot be mounted: {said or status}")

    def rank_mount(self, mount: Mount, volume: Volume) -> str:
        """Mount the image's own file, which all nodes see."""
        return bind(str(volume.path), mount.path, read_only=True, part=f"/{mount.sub_path or ''}")


def command(folders: Folders, volume: Volume) -> list[str]:
    """Return the program that goes on in the background once the image is there."""
    name = next((name for name in IMAGE_SERVERS if shutil.which(name)), IMAGE_SERVERS[0])
    return [name, "-o", _OPTIONS, str(volume.path), str(KIND.place(folders, volume))]


async def _run(pod: Pod, argv: list[str]) -> tuple[int, str]:
    """Run a program of the node in the pod's namespaces; return its status, as wait(2) gives it, and its complaint."""
    pipes = outputs.pipes(stdin=False)
    _, stdout, errors = pipes.ours
    os.close(stdout)
    complaint = asyncio.ensure_future(read_all(errors or 0))
    place = pod.spaces.place()
    try:
        process = await pod.processes.start(Program(argv, environment(pod.folders)), place, pipes.theirs)
    finally:
        place.close()
        pipes.close_theirs()
    if not await process.ended(START_S):
        process.kill(signal.SIGKILL)
    # A process that it leaves in the background keeps no stream of it.
    await asyncio.wait([complaint], timeout=STOP_S)
    said = complaint.result() if complaint.done() else b""
    complaint.cancel()
    return await process.status, said.decode(errors="replace").strip()


KIND = Image()
