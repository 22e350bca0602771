"""One writer ever: a lock on the data, and the word of Slurm about the job that had it last.

Either alone is not enough. A home may not have locks that other nodes see; and Slurm's word that a job has ended says
nothing about a process that it could not reach. So both must agree. The lock's descriptor is passed on to etcd: a
control plane that is killed leaves the data locked until its etcd is gone too.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Callable
from contextlib import suppress

from isthmus.controlplane.errors import OwnedError, UnansweredError
from isthmus.controlplane.layout import Layout
from isthmus.support import durable

# How long a start waits for the end of the one before: an etcd that syncs to a slow home, a job in its epilog.
WAIT_S = 60.0
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
    deadline = time.monotonic() + wait_s
    told = ""
    try:
        while reason := _hindrance(descriptor, layout, job, is_alive):
            if time.monotonic() >= deadline:
                raise OwnedError(f"{reason}; end it with `isthmus down`, or wait for its end")
            if reason != told:
                tell(f"waiting: {reason}")
                told = reason
            time.sleep(_PAUSE_S)
        durable.write(layout.owner, json.dumps({"schema": 1, "job": job}) + "\n", 0o600)
    except BaseException:
        os.close(descriptor)
        raise
    return Ownership(descriptor)


def owner(layout: Layout) -> str | None:
    """Return the job that had the data last."""
    try:
        return str(json.loads(layout.owner.read_text(encoding="utf-8"))["job"])
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError) as error:
        raise OwnedError(f"{layout.owner} cannot be read; remove it when no control plane of yours runs") from error


def _hindrance(descriptor: int, layout: Layout, job: str, is_alive: IsAlive) -> str:
    """Return what is in the way, "" for nothing; then the lock is held."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
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
