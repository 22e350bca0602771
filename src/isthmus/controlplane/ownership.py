"""One writer ever: a lock on the data, and the word of Slurm about the job that had it last.

Either alone is not enough. A home may not have locks that other nodes see; and Slurm's word that a job has ended says
nothing about a process that it could not reach. So both must agree. The lock's descriptor is passed on to the
programs: a control plane that is killed leaves the data locked until the last of them is gone. What such a one left
behind in its own job, containers outlive their parent, is ended by the one that begins anew there.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from isthmus.controlplane.errors import OwnedError, UnansweredError
from isthmus.controlplane.layout import Layout
from isthmus.support import durable

# How long a start waits for the end of the one before: an etcd that syncs to a slow home, a job in its epilog.
WAIT_S = 60.0
# How long leftovers may take to end in order.
PATIENCE_S = 10.0
_PAUSE_S = 0.5


IsAlive = Callable[[str], bool]
"""Asks Slurm whether a job may still run somewhere; raises UnansweredError for no answer."""


class Ownership:
    """The right to write a cluster's data, held until `release` and by every process that has `descriptor`."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor

    def release(self) -> None:
        """Give up this process's part of it."""
        with suppress(OSError):
            os.close(self.descriptor)


def take(
    layout: Layout,
    job: str,
    is_alive: IsAlive,
    *,
    wait_s: float = WAIT_S,
    tell: Callable[[str], None] = lambda _: None,
) -> Ownership:
    """Become the one that writes.

    Args:
        layout: whose data.
        job: this job.
        is_alive: asks Slurm.
        wait_s: how long to wait for another that is about to end.
        tell: hears what is waited for, once per reason.

    Raises:
        OwnedError: another job has the data, or nobody can tell.
    """
    layout.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(layout.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    deadline, patient = time.monotonic() + wait_s, time.monotonic() + PATIENCE_S
    told, number = "", signal.SIGTERM
    try:
        while reason := _hindrance(descriptor, layout, job, is_alive, number):
            number = signal.SIGTERM if time.monotonic() < patient else signal.SIGKILL
            if time.monotonic() >= deadline:
                raise OwnedError(f"{reason}; end it with `isthmus down`, or wait for its end")
            if reason != told:
                tell(f"waiting: {reason}")
                told = reason
            time.sleep(_PAUSE_S)
        durable.write(layout.owner, json.dumps({"schema": 1, "job": job, "pid": os.getpid()}) + "\n", 0o600)
    except BaseException:
        os.close(descriptor)
        raise
    return Ownership(descriptor)


def owner(layout: Layout) -> str | None:
    """Return the job that had the data last."""
    found = _read_owner(layout)
    return found[0] if found else None


def _read_owner(layout: Layout) -> tuple[str, int] | None:
    try:
        told = json.loads(layout.owner.read_text(encoding="utf-8"))
        return str(told["job"]), int(told.get("pid", 0))
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError) as error:
        raise OwnedError(f"{layout.owner} cannot be read; remove it when no control plane of yours runs") from error


def _hindrance(descriptor: int, layout: Layout, job: str, is_alive: IsAlive, number: signal.Signals) -> str:
    """Return what is in the way, "" for nothing; then the lock is held. Leftovers get the signal."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        _end_leftovers(descriptor, layout, job, number)
        return f"{layout.folder} is locked by job {owner(layout)}"
    last = owner(layout)
    # A job that began anew is its own predecessor, and has the lock.
    if last is None or last == job:
        return ""
    try:
        if not is_alive(last):
            return ""
        reason = f"{layout.folder} belongs to job {last}, which has not ended"
    except UnansweredError as error:
        reason = f"nobody can tell whether job {last} has ended: {error}"
    fcntl.flock(descriptor, fcntl.LOCK_UN)
    return reason


def _end_leftovers(descriptor: int, layout: Layout, job: str, number: signal.Signals) -> None:
    """End programs of this very job that hold the lock here without the control plane that started them."""
    found = _read_owner(layout)
    holders = set(_holders(descriptor)) - {os.getpid()}
    if found is None or found[0] != job or found[1] in holders:
        return
    for pid in holders:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def _holders(descriptor: int) -> Iterator[int]:
    wanted = os.fstat(descriptor)
    for folder in Path("/proc").glob("[0-9]*/fd"):
        # Others' processes, and those that have just ended, tell nothing.
        with suppress(OSError):
            if any(os.path.samestat(wanted, each.stat()) for each in folder.iterdir()):
                yield int(folder.parent.name)
