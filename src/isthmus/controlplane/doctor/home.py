"""`isthmus doctor`: whether the home can hold etcd's data, and how those on a node's disk are."""

from __future__ import annotations

import os
import shutil
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from isthmus.controlplane.commands import user_options
from isthmus.controlplane.commands.context import Context, control_planes, jobs
from isthmus.controlplane.data import data_report, location
from isthmus.controlplane.data.ownership import NO_LOCKS_REMEDY
from isthmus.controlplane.doctor.findings import Finding, Level
from isthmus.controlplane.settings import DataLocation
from isthmus.support import locks

# etcd's own advice (Hardware recommendations): 99 % of syncs below 10 ms; requests of the API server wait.
SYNC_GOOD_S = 0.010
SYNC_BAD_S = 0.500
_SYNCS = 50
ROOM_BYTES = 2 << 30
_ELSEWHERE = "`isthmus up --data node` keeps the data on the node's disk, and snapshots in the home"


def folder(context: Context) -> Iterator[Finding]:
    """Look who else may read."""
    found = context.home.folder
    found.mkdir(mode=0o700, exist_ok=True)
    mode = found.stat().st_mode & 0o777
    if mode & 0o077:
        yield Finding(Level.FAILURE, f"{found} is open to others ({mode:o})", f"chmod 700 {found}")
    else:
        yield Finding(Level.OK, f"{found} is yours alone")


def room(context: Context) -> Iterator[Finding]:
    """Look how full the home is."""
    free = shutil.disk_usage(context.home.folder).free
    words = f"{free >> 20} MiB are free in {context.home.folder}"
    if free < ROOM_BYTES:
        yield Finding(Level.WARNING, words, "remove old files of ~/.isthmus/images; etcd stops writing on a full home")
    else:
        yield Finding(Level.OK, words)


def syncs(context: Context) -> Iterator[Finding]:
    """Write and sync as etcd does: small appended blocks."""
    with TemporaryDirectory(dir=context.home.folder, prefix=".doctor.") as folder:
        took = sorted(_sync_times(Path(folder) / "wal"))
    yield judged(statistics.median(took), took[int(0.98 * len(took))], is_on_home=_is_on_home(context))


def judged(median_s: float, slow_s: float, *, is_on_home: bool) -> Finding:
    """Judge how long syncs take; where the data are not on the home they are only reported."""
    words = f"a sync of the home takes {median_s * 1e3:.1f} ms, slow ones {slow_s * 1e3:.1f} ms"
    if not is_on_home:
        return Finding(Level.OK, f"{words}; etcd's data are not there")
    if slow_s > SYNC_BAD_S:
        return Finding(Level.FAILURE, words, f"etcd would lose its own lead; {_ELSEWHERE}")
    if slow_s > SYNC_GOOD_S:
        return Finding(Level.WARNING, words, f"the cluster works, and each change waits for it; {_ELSEWHERE}")
    return Finding(Level.OK, words)


def _sync_times(path: Path) -> Iterator[float]:
    with path.open("wb", buffering=0) as file:
        for _ in range(_SYNCS):
            began_s = time.perf_counter()
            file.write(os.urandom(4096))
            os.fdatasync(file.fileno())
            yield time.perf_counter() - began_s


def locking(context: Context) -> Iterator[Finding]:
    """Lock a file twice: the second must not get it."""
    # Without locks Slurm's word alone keeps a second control plane off: enough where each writes another disk.
    level = Level.FAILURE if _is_on_home(context) else Level.WARNING
    with (
        TemporaryDirectory(dir=context.home.folder, prefix=".doctor.") as folder,
        (Path(folder) / "lock").open("w") as first,
        (Path(folder) / "lock").open("w") as second,
    ):
        if locks.take(first.fileno()) is None:
            yield Finding(level, "the home has no locks", NO_LOCKS_REMEDY)
        elif locks.take(second.fileno()):
            yield Finding(level, "the home gives one lock to two at once", NO_LOCKS_REMEDY)
        else:
            yield Finding(Level.OK, "the home has locks")


def snapshots(context: Context) -> Iterator[Finding]:
    """Return how old the last snapshot is, and why there is none newer."""
    mine = control_planes(jobs())
    found = data_report.read(context.home.cluster, mine[0].id) if mine else None
    if found is None:
        return
    if found.words:
        yield Finding(Level.OK, found.words)
    for warning in found.warnings:
        yield Finding(Level.WARNING, warning, "`isthmus logs job` shows more")


def _is_on_home(context: Context) -> bool:
    return location.wanted(context.settings, user_options.read(context.home.cluster)) is DataLocation.HOME
