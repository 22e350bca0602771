"""The plugin, built plainly and with sanitizers, in a program that calls it as Slurm does."""

from __future__ import annotations

import fcntl
import os
import subprocess
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.unit.spank.fake_daemon import FakeDaemon, ok

HERE = Path(__file__).parent
SOURCE = HERE.parents[2] / "src/spank"
# What the plugin may wait for the daemon; a busy machine needs more than a second for an answer.
LIMIT_S = 3
# A build takes seconds; the rest is for a busy machine.
HANGS_S = 120
# Waiting for a time limit twice shows nothing more than waiting once.
ONE_BUILD = pytest.mark.parametrize("plugin", ["sanitized"], indirect=True)
READY = ok(state="ready", netns="/proc/self/ns/net", leg="il4096", address="10.0.0.2")


@dataclass(frozen=True)
class Result:
    """What the host program reported, and what the plugin logged."""

    reported: list[str]
    logged: str

    @property
    def errors(self) -> list[str]:
        """The lines a user or admin would read."""
        return [line.removeprefix("error: ") for line in self.logged.splitlines() if line.startswith("error: ")]


@dataclass(frozen=True)
class Plugin:
    """A built plugin on a node of its own: a folder with the daemon's socket and the records.

    Attributes:
        library: the built file.
        host: the program that loads it.
        folder: stands for /run/isthmus.
    """

    library: Path
    host: Path
    folder: Path

    @property
    def socket(self) -> Path:
        """Where the daemon listens, or would."""
        return self.folder / "networkd.sock"

    def run(
        self, program: str, *words: str, limit_s: int = LIMIT_S, kept: Sequence[int] = (), **environment: str
    ) -> Result:
        """Run one of Slurm's programs, with HOST_... and SLURM_... variables; a sanitizer's finding fails."""
        command = [self.host, self.library, program, f"socket={self.socket}", f"timeout_s={limit_s}", *words]
        variables = {"PATH": os.environ["PATH"], "HOST_FAKE": "1"} | environment
        done = subprocess.run(
            command, env=variables, capture_output=True, errors="backslashreplace", timeout=HANGS_S, pass_fds=kept
        )
        assert done.returncode == int(environment.get("HOST_EXIT", "0")), done.stdout + done.stderr
        return Result(done.stdout.splitlines(), done.stderr)

    def record(self, name: str, text: str | None = None) -> str | None:
        """Read what a prolog left; with a text, leave it."""
        path = self.folder / "spank" / name
        if text is not None:
            path.parent.mkdir(exist_ok=True)
            path.write_text(f"{text}\n")
        return path.read_text().removesuffix("\n") if path.exists() else None


def run(*command: str | Path) -> None:
    """Run a compiler or make; without json-c's headers (libjson-c-dev) it fails here."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANGS_S)
    assert done.returncode == 0, done.stdout + done.stderr


def symbols(library, which):
    """Return the names of a library's symbols."""
    listed = subprocess.run(["nm", "-D", which, library], capture_output=True, text=True, check=True).stdout
    return {line.split()[-1].partition("@")[0] for line in listed.splitlines()}


@contextmanager
def once(tmp_path_factory, name):
    """Give a folder of all processes of this run, one after the other: the first builds, the others find that."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / name
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        folder.mkdir(exist_ok=True)
        yield folder


@pytest.fixture(scope="session")
def host(tmp_path_factory):
    """The program that stands in for Slurm's, by kind of build."""
    flags = ["-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-rdynamic", "-isystem", HERE / "stub"]
    with once(tmp_path_factory, "spank-host") as folder:
        for name, more in (("plain", []), ("sanitized", ["-fsanitize=address,undefined"])):
            if not (folder / name).exists():
                run("cc", *flags, *more, "-o", folder / name, HERE / "host.c", "-ldl")
        return folder


@pytest.fixture(scope="session")
def built(tmp_path_factory):
    """Both builds of the plugin against the stub headers."""
    with once(tmp_path_factory, "spank-build") as folder:
        for target in ("all", "sanitize"):
            run("make", "-s", "-j2", "-C", SOURCE, target, f"OUT={folder}", f"SLURM_INCLUDE={HERE / 'stub'}")
    return {"plain": folder / "isthmus_spank.so", "sanitized": folder / "sanitize/isthmus_spank.so"}


@pytest.fixture(params=["plain", "sanitized"])
def plugin(request, built, host, tmp_path):
    """The plugin on a node of its own."""
    return Plugin(built[request.param], host / request.param, tmp_path)


@pytest.fixture
def daemon(plugin) -> Callable[..., FakeDaemon]:
    """Start a daemon with answers for some operations: `daemon(job_get=READY)`."""
    started = []

    def start(*, deaf=False, **script):
        queues = {op: answers if isinstance(answers, list) else [answers] for op, answers in script.items()}
        started.append(FakeDaemon(plugin.socket, queues, deaf=deaf))
        return started[-1]

    yield start
    for each in started:
        each.close()
        each.check()
