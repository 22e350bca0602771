"""Reaches a running test bed by the SSH configuration the deployer keeps for it."""

from __future__ import annotations

import argparse
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class TestBed:
    """One host of a test bed and the user to be there."""

    name: str
    host: str
    user: str

    @property
    def ssh(self) -> list[str]:
        """The command to which a remote command is appended."""
        state = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local/state")
        config = state / "isthmus" / self.name / "ssh/config"
        return ["ssh", "-F", str(config), f"{self.user}@{self.host}"]

    def run(self, command: str, stdin: str = "") -> str:
        """Run a command there and return its output; raise when it fails. Its errors are this program's too."""
        pipe = subprocess.PIPE
        return subprocess.run([*self.ssh, command], input=stdin, stdout=pipe, text=True, check=True).stdout

    def lines(self, command: str) -> Iterator[str]:
        """Yield the command's lines of output as they come."""
        with subprocess.Popen(
            [*self.ssh, command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
        ) as process:
            for line in process.stdout or ():
                yield line.strip()
        if process.returncode:
            raise subprocess.CalledProcessError(process.returncode, command)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Say which test bed, which host and who."""
    parser.add_argument("--name", default=os.environ.get("NAME", "isthmus"), help="test bed (default: %(default)s)")
    parser.add_argument("--host", default="login", help="submit host (default: %(default)s)")
    parser.add_argument("--user", default="alice", help="who submits (default: %(default)s)")
