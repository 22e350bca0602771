"""One runner for all child processes: a failure shows the command, ready to paste, and both streams."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

# The cause of a long error is at its end.
_SHOWN_LINES = 40
# Between two looks at one that may take long.
_LOOK_S = 0.5


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
        output = (stderr.strip() or stdout.strip()).splitlines()[-_SHOWN_LINES:]
        super().__init__("\n".join([f"{command}: {reason}", *output]))


class StalledError(ProcessError):
    """A program that got on too slowly, or that nobody wanted any more."""


def never() -> bool:
    """Return False: the work is still wanted."""
    return False


def folder_bytes(folder: Path) -> int:
    """Return how large the files below a folder are; those that come and go meanwhile count or not."""
    found = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                found += os.lstat(os.path.join(parent, name)).st_size
    return found


@dataclass(frozen=True, slots=True)
class Patience:
    """When a program is ended that may well take long.

    Attributes:
        window_s: in each of these at least `least` must be added to `progress`.
        least: see there.
        progress: what the program has done so far, as a number that grows.
        unwanted: whether nobody waits for it any more.
        grace_s: between SIGTERM and SIGKILL; none for SIGKILL at once.
    """

    window_s: float
    least: int = 0
    progress: Callable[[], int] = int
    unwanted: Callable[[], bool] = never
    grace_s: float = 0.0


def run_patiently(
    argv: Sequence[str | Path],
    patience: Patience,
    environment: Mapping[str, str],
    feed: Callable[[int], None] | None = None,
) -> Finished:
    """Run a program that may take long; with all that it has started it is ended when patience is.

    Args:
        argv: the program and its arguments; no shell sees them.
        patience: when it is ended.
        environment: variables set besides the inherited ones.
        feed: writes what the program reads to the descriptor it is given, in a thread; nothing by default.

    Raises:
        StalledError: it was ended.
        ProcessError: it did not end with status 0.
        Exception: what `feed` raised.
    """
    words = [str(word) for word in argv]
    command = shlex.join(words)
    feeder = _Feeder(feed) if feed else None
    try:
        child = subprocess.Popen(  # noqa: S603
            words,
            env={**os.environ, **environment},
            stdin=feeder.read_end if feeder else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,
        )
    except OSError as error:
        raise ProcessError(command, None, error.strerror or str(error)) from error
    finally:
        if feeder:
            feeder.begin()
    with child:
        try:
            stdout, stderr = _awaited(child, command, patience)
        except BaseException:
            _end(child, patience.grace_s)
            raise
    if feeder:
        feeder.end()
    if child.returncode:
        raise ProcessError(command, child.returncode, f"ended with status {child.returncode}", stdout, stderr)
    return Finished(stdout, stderr)


def fed(text: str) -> Callable[[int], None]:
    """Return what feeds a program with a text."""

    def feed(pipe: int) -> None:
        with os.fdopen(os.dup(pipe), "w", encoding="utf-8") as file:
            file.write(text)

    return feed


def _end(child: subprocess.Popen[str], grace_s: float) -> None:
    """End a program with all that it has started in its session."""
    with suppress(ProcessLookupError):
        if grace_s:
            os.killpg(child.pid, signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                child.communicate(timeout=grace_s)
        os.killpg(child.pid, signal.SIGKILL)


class _Feeder:
    """A pipe that a thread writes to; who reads it is the child alone."""

    def __init__(self, feed: Callable[[int], None]) -> None:
        self.read_end, self._write_end = os.pipe()
        self._feed, self._failed = feed, list[BaseException]()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def begin(self) -> None:
        """Begin, when the child has its end or will never have it."""
        os.close(self.read_end)
        self._thread.start()

    def end(self) -> None:
        """Wait for the thread; raise what `feed` did, but for a child that read no further."""
        self._thread.join()
        if self._failed and not isinstance(self._failed[0], BrokenPipeError):
            raise self._failed[0]

    def _run(self) -> None:
        try:
            self._feed(self._write_end)
        except BaseException as error:
            self._failed.append(error)
        finally:
            os.close(self._write_end)


def _awaited(child: subprocess.Popen[str], command: str, patience: Patience) -> tuple[str, str]:
    began_s, before = time.monotonic(), 0
    while True:
        try:
            return child.communicate(timeout=min(_LOOK_S, patience.window_s))
        except subprocess.TimeoutExpired:
            if patience.unwanted():
                raise StalledError(command, None, "is not wanted any more") from None
        if time.monotonic() - began_s < patience.window_s:
            continue
        now = patience.progress()
        if now - before < max(patience.least, 1):
            raise StalledError(command, None, f"got on by {now - before} bytes in {patience.window_s:g} s")
        began_s, before = time.monotonic(), now


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
