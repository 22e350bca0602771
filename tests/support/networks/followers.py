"""The program that follows Services in login pods, as systemd starts it: with the socket that the daemon connects to.

Its forks say once for each table how they are, in a file; they do what they do, but for a daemon that takes tables.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from isthmus.network.logins.followers import Followers
from tests.repo.tree import ROOT
from tests.support.wait import wait

# Accounts that every machine has.
ALICE, BOB = 1, 2
AGAIN_S = 0.3
PROGRAM = f"""
import json, os, sys
from pathlib import Path
from types import SimpleNamespace
from isthmus.cli import login_followers, login_services
from isthmus.controlplane.settings import Settings

FOLDER = Path(sys.argv[1])

def put(table):
    status = open("/proc/self/status").read().splitlines()
    kept = ("Groups", "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Umask")
    said = {{
        "pid": os.getpid(), "parent": os.getppid(), "uids": os.getresuid(), "gids": os.getresgid(),
        "network": os.stat("/proc/self/ns/net").st_ino, "folder": os.getcwd(), "environment": dict(os.environ),
        "status": {{line.split(":")[0]: line.split(":")[1].split() for line in status if line.startswith(kept)}},
        "services": sorted(str(port.address) for port in table),
    }}
    descriptor = os.open(FOLDER / "said", os.O_WRONLY | os.O_APPEND)
    os.write(descriptor, json.dumps(said).encode() + b"\\n")
    os.close(descriptor)

login_services.put = put
login_services.LOOK_S = login_services.FIRST_S = login_services.LONGEST_S = 0.2
login_followers.AGAIN_S = {AGAIN_S}
login_followers.settings = SimpleNamespace(read=lambda: Settings(Path("/")))
login_followers.Home = lambda home: SimpleNamespace(kubeconfig=FOLDER / str(os.getuid()) / "kubeconfig")
sys.exit(login_followers.main())
"""


class Bed:
    """The program, its users' homes and pods, and a daemon.

    Attributes:
        folder: of homes, by uid.
        daemon: its side.
        process: the program; the latest, as each connection has a new one.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.pods = folder, folder / "pods"
        self.processes: list[subprocess.Popen[bytes]] = []
        self.pods.mkdir(mode=0o700)
        (folder / "said").touch()
        (folder / "said").chmod(0o666)
        self.daemon = Followers(self.pods, self.start, folder / "socket")

    @property
    def process(self) -> subprocess.Popen[bytes]:
        return self.processes[-1]

    def start(self) -> None:
        """Start the program as systemd does: the socket is its descriptor 3."""
        path = self.folder / "socket"
        path.unlink(missing_ok=True)
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listening:
            listening.bind(str(path))
            listening.listen()
            shell = 'exec 3<&"$1"; export LISTEN_FDS=1 LISTEN_PID=$$; shift; exec "$@"'
            program = [sys.executable, "-c", PROGRAM, str(self.folder)]
            descriptor = listening.fileno()
            self.processes.append(
                subprocess.Popen(
                    ["bash", "-c", shell, "bash", str(descriptor), *program],
                    pass_fds=[descriptor],
                    env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}", "SECRET": "of root's"},
                )
            )

    def network(self, uid: int, path: str) -> None:
        """Have a user's pod have a network."""
        (self.pods / str(uid)).mkdir(exist_ok=True)
        (self.pods / str(uid) / "netns").symlink_to(path)

    def home(self, uid: int) -> Path:
        """Return where a user's kubeconfig is to be."""
        folder = self.folder / str(uid)
        folder.mkdir(exist_ok=True)
        os.chown(folder, uid, uid)
        return folder / "kubeconfig"

    def said(self, uid: int) -> list[dict[str, Any]]:
        """Return what the forks of a user have said."""
        lines = (self.folder / "said").read_text().splitlines()
        return [said for said in map(json.loads, lines) if said["uids"][0] == uid]

    def saying(self, uid: int, times: int = 1) -> dict[str, Any]:
        """Wait until they have said it so often; return the last."""
        return wait(lambda: self.said(uid), lambda said: len(said) >= times, timeout_s=30)[-1]

    def forks(self) -> list[int]:
        """Return the process ids of all forks, of each program."""
        found = []
        for place in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                is_ours = str(self.folder).encode() in (place / "cmdline").read_bytes()
                if is_ours and int(place.name) not in [each.pid for each in self.processes]:
                    found.append(int(place.name))
        return sorted(found)


@contextmanager
def followers_bed() -> Iterator[Bed]:
    """Give one, in a folder that users can look into."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        bed = Bed(folder)
        try:
            yield bed
        finally:
            bed.daemon.close()
            for process in bed.processes:
                process.kill()
                process.wait()
