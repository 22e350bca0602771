"""A pod's folder that fails while its pod runs: full, silent, or gone, and back again.

It is a mount in the Apptainer host, made before the supervisor starts. fuse-overlayfs makes it silent (SIGSTOP: every
call waits, as on a file server that does not answer) and gone (SIGKILL: every call fails, of open files too).
"""

import os
import signal
from contextlib import suppress
from pathlib import Path

_SMALL = "cp -a {0} /scratch/kept; mount -t tmpfs -o size=256k none {0}; cp -a /scratch/kept/. {0}; rm -r /scratch/kept"
_LAYERS = "lowerdir={0},upperdir=/scratch/up,workdir=/scratch/work"
_SERVED = "mkdir -p /scratch/up /scratch/work; fuse-overlayfs -o " + _LAYERS + ",writeback=0,allow_other {0}"


class FaultyHome:
    """The folder of a pod that has not started yet."""

    def __init__(self, pod):
        self._pod, self._host, self._folder = pod, pod.host, pod.folder

    def small(self):
        """Give it room for 256 KiB."""
        self._run(_SMALL.format(self._folder))
        return self

    def served(self):
        """Have it served by a program."""
        self._run(_SERVED.format(self._folder))
        return self

    def fill(self):
        """Leave no room."""
        self._run(f"dd if=/dev/zero of={self._folder}/filler bs=1k 2>/dev/null || true")

    def empty(self):
        """Give the room back."""
        self._run(f"rm {self._folder}/filler")

    def silence(self):
        """Answer nothing any more."""
        self._signal(signal.SIGSTOP)

    def answer(self):
        """Answer again."""
        self._signal(signal.SIGCONT)

    def die(self):
        """Fail each call."""
        self._signal(signal.SIGKILL)

    def revive(self):
        """Be there again, with what was there."""
        self._run(f"umount -l {self._folder}")
        self.served()

    def text(self, path):
        """Return a file's content, as the node sees it."""
        return self._host.run("cat", f"{self._folder}/{path}")

    def end(self):
        """Remove it, however it is."""
        self._signal(signal.SIGKILL)
        self._host.run("sh", "-c", f"umount -l {self._folder}; rm -rf /scratch/up /scratch/work", check=False)

    def _signal(self, number):
        for pid in self._pod.processes(str(self._folder).encode()):
            # Also one that has just gone.
            with suppress(OSError):
                if Path(f"/proc/{pid}/cmdline").read_bytes().startswith(b"fuse-overlayfs"):
                    os.kill(pid, number)

    def _run(self, script):
        self._host.run("sh", "-ec", script)
