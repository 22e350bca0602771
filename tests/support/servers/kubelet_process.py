"""The kubelet as a process of its own, on a real API server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from isthmus.images.known import Known
from isthmus.model.images import file_name, parse
from tests.support.fakes import slurm_programs
from tests.support.servers.api_server import NODE, ApiServer
from tests.support.servers.kubelet_bed import DIGEST

IMAGE = "ctl:5000/web:1"
# As the control plane starts it, but for the place of the admin's file.
START = """
import os, pathlib
from isthmus.kubelet import main, settings
read = settings.read
settings.read = lambda environment: read(environment, pathlib.Path(os.environ["SETTINGS"]))
raise SystemExit(main.main())
"""


class Process:
    """A kubelet that may be killed; Slurm's commands are stand-ins."""

    def __init__(self, server: ApiServer, home: Path) -> None:
        self.home = home
        self.process: subprocess.Popen[bytes] | None = None
        cluster = home / ".isthmus/cluster"
        cluster.mkdir(parents=True)
        (cluster / "pki").symlink_to(server.pki)
        (cluster / "kubelet.kubeconfig").write_text(server.kubeconfig("kubelet").read_text())
        self.slurm = slurm_programs.write(home / "slurm")
        reported = {"schema": 1, "driver": "none", "slurm_prefix": str(self.slurm)}
        (home / "kubernetes.json").write_text(json.dumps(reported))
        self.environment = {
            **os.environ,
            "SETTINGS": str(home / "kubernetes.json"),
            "ISTHMUS_CLUSTER_DIR": str(cluster),
            "ISTHMUS_NODE_NAME": NODE,
            "ISTHMUS_ADDRESS": "127.0.0.1",
            "ISTHMUS_KUBELET_PORT": "0",
            "ISTHMUS_CHANNEL_PORT": "0",
            "SLURM_JOB_ID": "1",
            "SBATCH_ACCOUNT": "own",
            "ISTHMUS_RESERVATION": "kubernetes",
        }

    def start(self) -> None:
        """Start it."""
        with (self.home / "kubelet.log").open("ab") as log:
            self.process = subprocess.Popen([sys.executable, "-c", START], env=self.environment, stdout=log, stderr=log)

    def kill(self) -> None:
        """End it without a word."""
        assert self.process
        self.process.kill()
        self.process.wait(60)

    def memory_mib(self) -> float:
        """Return the most that it had in memory."""
        assert self.process
        with open(f"/proc/{self.process.pid}/status") as file:
            return next(int(line.split()[1]) for line in file if line.startswith("VmHWM")) / 1024


def cache(home: Path) -> None:
    """Put an image into the user's cache, as a pull leaves it."""
    folder = home / ".isthmus/images"
    (folder / ".config").mkdir(parents=True)
    name = DIGEST.replace(":", "-")
    (folder / file_name(DIGEST)).touch()
    (folder / ".config" / f"{name}.json").write_text(json.dumps({"Cmd": ["sh"]}))
    Known(folder).remember(parse(IMAGE), DIGEST)
