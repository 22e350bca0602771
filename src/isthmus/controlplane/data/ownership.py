"""One writer ever: a lock on the data, and the word of Slurm about the job that had it last.

Either alone is not enough. A home may not have locks that other nodes see; and Slurm's word that a job has ended says
nothing about a process that it could not reach. So both must agree. The lock's descriptor is passed on to the
programs: a control plane that is killed leaves the data locked until the last of them is gone. What such a one left
behind in its own job, containers outlive their parent, is ended by the one that begins again there.

Data on a node's disk have a lock there besides, which always works and holds off whatever is left on that node. The
home may then have no locks at all: what was cut off elsewhere writes another disk, and `lineage` keeps its snapshots
from ever being used.
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
from isthmus.support import durable, locks

# How long a start waits for the end of the one before: until that one sees that its successor has a place, and then for
# an etcd that syncs to a slow home, and a job in its epilog.
WAIT_S = 120.0
# How long leftovers may take to end in order.
PATIENCE_S = 10.0
_PAUSE_S = 0.5
NO_LOCKS_REMEDY = "`isthmus up --data node` does without, or an admin mounts the home with locks (flock)"


IsAlive = Callable[[str], bool]
"""Asks Slurm whether a job may still run somewhere; raises UnansweredError for no answer."""


class Ownership:
    """The right to write a cluster's data, held until `release` and by every process that has `descriptors`."""

    def __init__(self, descriptors: tuple[int, ...]) -> None:
        self.descriptors = descriptors

    def release(self) -> None:
        """Give up this process's part of it."""
        for descriptor in self.descriptors:
            with suppress(OSError):
                os.close(descriptor)


def take(
    layout: Layout,
    job: str,
    is_alive: IsAlive,
    *,
    on_disk: Path | None = None,
    wait_s: float = WAIT_S,
    report: Callable[[str], None] = lambda _: None,
) -> Ownership:
    """Become the one that writes.

    Args:
        layout: whose data.
        job: this job.
        is_alive: asks Slurm.
        on_disk: the folder on this node's disk, where data are there; it is locked itself.
        wait_s: how long to wait for another that is about to end.
        report: hears what is waited for, once per reason.

    Raises:
        OwnedError: another job has the data, or that is unknown.
    """
    layout.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptors: tuple[int, ...] = (os.open(layout.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600),)
    if on_disk is not None:
        descriptors += (os.open(on_disk, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC),)
    deadline, patient = time.monotonic() + wait_s, time.monotonic() + PATIENCE_S
    reported, number = "", signal.SIGTERM
    try:
        while reason := _hindrance(descriptors, layout, job, is_alive, number):
            number = signal.SIGTERM if time.monotonic() < patient else signal.SIGKILL
            if time.monotonic() >= deadline:
                raise OwnedError(f"{reason}; end it with `isthmus down`, or wait for its end")
            if reason != reported:
                report(f"waiting: {reason}")
                reported = reason
            time.sleep(_PAUSE_S)
        durable.write(layout.owner, json.dumps({"schema": 1, "job": job, "pid": os.getpid()}) + "\n", 0o600)
    except BaseException:
        Ownership(descriptors).release()
        raise
    return Ownership(descriptors)


def owner(layout: Layout) -> str | None:
    """Return the job that had the data last."""
    found = _read_owner(layout)
    return found[0] if found else None


def _read_owner(layout: Layout) -> tuple[str, int] | None:
    try:
        reported = json.loads(layout.owner.read_text(encoding="utf-8"))
        return str(reported["job"]), int(reported.get("pid", 0))
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError) as error:
        raise OwnedError(f"{layout.owner} cannot be read; remove it when no control plane of yours runs") from error


def _hindrance(
    descriptors: tuple[int, ...], layout: Layout, job: str, is_alive: IsAlive, number: signal.Signals
) -> str:
    """Return what is in the way, "" for nothing; then the locks are held. Leftovers get the signal."""
    for descriptor in descriptors:
        locked = locks.take(descriptor)
        # Without the home's lock there is the disk's; without either there is nothing.
        if locked is None and descriptor == descriptors[-1]:
            raise OwnedError(f"{layout.folder} cannot be locked: there are no locks; {NO_LOCKS_REMEDY}")
        if locked is False:
            _end_leftovers(descriptor, layout, job, number)
            _unlock(descriptors)
            return f"{layout.folder} is locked by job {owner(layout)}"
    last = owner(layout)
    # A job that began again is its own predecessor, and has the lock.
    if last is None or last == job:
        return ""
    try:
        if not is_alive(last):
            return ""
        reason = f"{layout.folder} belongs to job {last}, which has not ended"
    except UnansweredError as error:
        reason = f"it is unknown whether job {last} has ended: {error}"
    _unlock(descriptors)
    return reason


def _unlock(descriptors: tuple[int, ...]) -> None:
    for descriptor in descriptors:
        # A home without locks.
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_UN)


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
        # Processes of others, and those that have just ended, cannot be read.
        with suppress(OSError):
            if any(os.path.samestat(wanted, each.stat()) for each in folder.iterdir()):
                yield int(folder.parent.name)
