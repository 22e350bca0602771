"""One runner for all child processes: a failure shows the command, ready to paste, and both streams."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

# Of a long error the end tells why.
_SHOWN_LINES = 40


@dataclass(frozen=True, slots=True)
class Finished:
    """A program that ended with status 0."""

    stdout: str
    stderr: str


class ProcessError(Exception):
    """A program that could not be started, failed, or took too long.

    Attributes:
        command: what was run, quoted for a shell.
        status: its exit status; None when it never started or was stopped for taking too long.
        stdout: what it wrote there.
        stderr: what it wrote there.
    """

    def __init__(self, command: str, status: int | None, reason: str, stdout: str = "", stderr: str = "") -> None:
        self.command = command
        self.status = status
        self.stdout = stdout
        self.stderr = stderr
        told = (stderr.strip() or stdout.strip()).splitlines()[-_SHOWN_LINES:]
        super().__init__("\n".join([f"{command}: {reason}", *told]))


def run(
    argv: Sequence[str | Path],
    *,
    timeout_s: float | None = None,
    environment: Mapping[str, str] | None = None,
    without: Collection[str] = (),
    cwd: Path | None = None,
    input_text: str | None = None,
) -> Finished:
    """Run a program to its end.

    Args:
        argv: the program and its arguments; no shell sees them.
        timeout_s: when to stop it.
        environment: variables set besides the inherited ones.
        without: inherited variables that it does not see.
        cwd: where to run it.
        input_text: what it reads on standard input; nothing by default.

    Raises:
        ProcessError: it did not end with status 0.
    """
    words = [str(word) for word in argv]
    command = shlex.join(words)
    inherited = {name: value for name, value in os.environ.items() if name not in without}
    try:
        done = subprocess.run(  # noqa: S603
            words,
            cwd=cwd,
            env={**inherited, **(environment or {})},
            input=input_text or "",
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise ProcessError(command, None, f"stopped after {timeout_s} s") from error
    except OSError as error:
        raise ProcessError(command, None, error.strerror or str(error)) from error
    if done.returncode:
        raise ProcessError(command, done.returncode, f"ended with status {done.returncode}", done.stdout, done.stderr)
    return Finished(done.stdout, done.stderr)
