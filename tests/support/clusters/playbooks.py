"""Runs playbooks as an admin does: output streams, is kept in results/logs, and the recap is read."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tests.support.clusters.cluster import BIN, ROOT, inventory_sources

LOGS = ROOT / "results/logs"
RECAP = re.compile(r"^(\S+) +: ok=\d+ +changed=(\d+) +unreachable=(\d+) +failed=(\d+)", re.MULTILINE)
COLOR = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True)
class Result:
    """How a command ended and what it printed, without colours, and when it printed each line."""

    rc: int
    output: str
    at_s: Sequence[float] = ()

    @property
    def recap(self) -> dict[str, dict[str, int]]:
        """Host -> its counts in the play recap."""
        found = RECAP.findall(self.output)
        return {host: {"changed": int(a), "unreachable": int(b), "failed": int(c)} for host, a, b, c in found}

    @property
    def changed(self) -> set[str]:
        """The hosts on which something changed."""
        return {host for host, counts in self.recap.items() if counts["changed"]}


def run(log: str, *command: str, environment: Mapping[str, str] | None = None, tree: Path = ROOT) -> Result:
    """Run a command of the deployer's environment in a tree, show its output as it comes, and keep it."""
    LOGS.mkdir(parents=True, exist_ok=True)
    path = f"{BIN}:{os.environ['PATH']}"
    variables = {**_environment(tree), "PATH": path, "PYTHONUNBUFFERED": "1", **(environment or {})}
    lines, at_s, begun = [], [], time.monotonic()
    with (
        Path(LOGS, f"{log}.log").open("w") as kept,
        subprocess.Popen(
            command, cwd=tree, env=variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        ) as process,
    ):
        for line in process.stdout or ():
            sys.stdout.write(line)
            sys.stdout.flush()
            kept.write(COLOR.sub("", line))
            lines.append(COLOR.sub("", line))
            at_s.append(time.monotonic() - begun)
    return Result(process.returncode, "".join(lines), at_s)


def _environment(tree: Path) -> dict[str, str]:
    """Return this process's variables; molecule's lead Ansible to this tree."""
    if tree == ROOT:
        return dict(os.environ)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")}
    return kept | {"ANSIBLE_CONFIG": str(tree / "ansible.cfg")}


def cut(at: str, *arguments: str, tree: Path = ROOT) -> None:
    """Run ansible-playbook and kill it, with all it started, when it begins the task of this name."""
    reached = _killed(lambda line: at in line, arguments, tree)
    assert reached, f"ansible-playbook {' '.join(arguments)} ended before the task {at}"


def cut_after(tasks: int, *arguments: str) -> str:
    """Kill it when it has begun so many tasks; the last one's banner, or "" when it ended before."""
    left = iter(range(tasks - 1, -1, -1))
    return _killed(lambda line: line.startswith("TASK [") and next(left) == 0, arguments)


def _killed(is_reached: Callable[[str], bool], arguments: Sequence[str], tree: Path = ROOT) -> str:
    sources = [argument for source in inventory_sources() for argument in ("-i", source)]
    command = (str(BIN / "ansible-playbook"), *sources, *arguments)
    with subprocess.Popen(
        command,
        cwd=tree,
        env=_environment(tree),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        lines = (COLOR.sub("", line) for line in process.stdout or ())
        reached = next((line.strip() for line in lines if is_reached(line)), "")
        # Ansible's workers have sessions of their own.
        workers = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        os.killpg(process.pid, signal.SIGKILL)
        for worker in map(int, workers):
            with suppress(ProcessLookupError):
                os.kill(worker, signal.SIGKILL)
    return reached


def play(log: str, *arguments: str, environment: Mapping[str, str] | None = None, tree: Path = ROOT) -> Result:
    """Run ansible-playbook on the inventory under test, with the playbooks of a tree."""
    sources = [argument for source in inventory_sources() for argument in ("-i", source)]
    return run(log, str(BIN / "ansible-playbook"), *sources, *arguments, environment=environment, tree=tree)


def succeed(log: str, *arguments: str, environment: Mapping[str, str] | None = None) -> Result:
    """Run a playbook that must succeed."""
    result = play(log, *arguments, environment=environment)
    assert result.rc == 0, f"ansible-playbook {' '.join(arguments)} failed; see results/logs/{log}.log"
    return result
