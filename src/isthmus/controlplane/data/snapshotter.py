"""While etcd's data lie on a node's disk: snapshots to the home, in time and at the end.

A snapshot is the whole database, so it is taken only where something changed that matters. Leases are renewed every
few seconds by every live component, and are worth nothing after a restore; they wait for the snapshot at the end. And
the pause grows with what the last one took, so that a slow home has mostly other things to do.

A snapshotter that finds another claim on the home was cut off while another one continued: it must not publish, and
ends.
"""

from __future__ import annotations

import asyncio
import json
import logging
import shutil
import time
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import partial
from threading import Lock
from typing import Any

from isthmus.clients.etcd.gateway import EtcdError
from isthmus.clients.etcd.snapshot import Bounds, Mark, Snapshots
from isthmus.controlplane.data import claims, snapshots
from isthmus.controlplane.data.claims import Claim
from isthmus.controlplane.data.snapshots import Snapshot
from isthmus.controlplane.errors import ControlPlaneError
from isthmus.controlplane.layout import Layout
from isthmus.support import durable

# Kubernetes' objects but leases: /registry/leases/ and the API servers' own /registry/masterleases/.
BOUNDS: Bounds = (
    ("/registry/", "/registry/leases/"),
    ("/registry/leases0", "/registry/masterleases/"),
    ("/registry/masterleases0", "/registry0"),
)
# Of all time, taking snapshots may have one part in so many.
SHARE = 20

_log = logging.getLogger(__name__)


class SupersededError(ControlPlaneError):
    """Another node went on with the cluster."""


@dataclass(slots=True)
class DataReport:
    """The report on the data; `schema` changes when a field changes its meaning.

    Attributes:
        schema: 1.
        job: Slurm's id.
        node: of the job; its disk has the data, unless they are on the home.
        folder: of the data.
        source: where the data came from at this start.
        warnings: what was lost at this start.
        every_s: after a change a snapshot follows within so many seconds, or a little more; 0 for data on the home.
        snapshot: the name of the last one.
        bytes: of it.
        took_s: for it.
        saved: when it was taken, ISO 8601; empty for none in this job.
        problem: why there is none newer.
    """

    job: str
    node: str
    folder: str
    source: str
    warnings: tuple[str, ...]
    every_s: int
    schema: int = 1
    snapshot: str = ""
    bytes: int = 0
    took_s: float = 0.0
    saved: str = ""
    problem: str = ""

    def write(self, layout: Layout) -> None:
        """Report it."""
        durable.write(layout.data, json.dumps(asdict(self), indent=1) + "\n", 0o600)


@dataclass(slots=True)
class Saver:
    """Takes the snapshots of one run.

    Attributes:
        layout: the files on the home.
        claim: of the data.
        etcd: makes the client of the one that is read; there may be no certificate yet.
        report: kept up to date, and written.
        last_s: how long the last snapshot is retried: within the half minute between Slurm's SIGTERM and SIGKILL.
        retry_s: between two attempts.
    """

    layout: Layout
    claim: Claim
    etcd: Callable[[], Snapshots]
    report: DataReport
    last_s: float = 12.0
    retry_s: float = 1.0
    _lock: Lock = field(default_factory=Lock)
    _mark: Mark | None = None

    async def run(self, superseded: Callable[[], None]) -> None:
        """Save again and again; call `superseded` and return when others went on."""
        while True:
            pause_s = float(self.report.every_s)
            try:
                if await asyncio.to_thread(self.save):
                    pause_s = max(pause_s, SHARE * self.report.took_s)
            except SupersededError as error:
                _log.error("%s", error)
                superseded()
                return
            except (EtcdError, ControlPlaneError, OSError) as error:
                _log.warning("no snapshot could be taken: %s", error)
                await asyncio.to_thread(self._update, problem=str(error))
            await asyncio.sleep(pause_s)

    async def last(self) -> None:
        """Save when nobody writes any more; what cannot be saved is on the disk still, and reported."""
        if self.layout.purge.exists():
            return
        deadline_s = time.monotonic() + self.last_s
        while True:
            try:
                await asyncio.to_thread(partial(self.save, is_final=True))
                return
            except SupersededError:
                return
            except (EtcdError, ControlPlaneError, OSError) as error:
                _log.error("the last snapshot could not be taken: %s", error)
                await asyncio.to_thread(self._update, problem=f"the last snapshot could not be taken: {error}")
            if time.monotonic() > deadline_s:
                return
            await asyncio.sleep(self.retry_s)

    def save(self, *, is_final: bool = False) -> bool:
        """Take a snapshot if something changed; return whether one was taken.

        Args:
            is_final: take one in any case, and say that it has everything.

        Raises:
            SupersededError: another node went on.
            EtcdError: etcd does not answer.
            OSError: the home cannot be written.
        """
        with self._lock, closing(self.etcd()) as etcd:
            self._check()
            mark = etcd.mark(BOUNDS)
            if mark == self._mark and not is_final and not self.report.problem:
                return False
            began_s = time.monotonic()
            snapshot = Snapshot(self.claim.generation, etcd.revision(), is_final)
            size = snapshots.publish(self.layout.snapshots, snapshot, etcd.save, self._check)
            self._mark = mark
            self._tidy()
            took_s = round(time.monotonic() - began_s, 3)
            saved = datetime.now(UTC).isoformat(timespec="seconds")
            self._update(snapshot=snapshot.name, bytes=size, took_s=took_s, saved=saved, problem="")
            return True

    def _tidy(self) -> None:
        folder = self.layout.snapshots
        usable = claims.candidates(snapshots.listed(folder), self.claim)
        snapshots.prune(folder, usable[: snapshots.KEPT])
        # Data that were on the home before are older now.
        shutil.rmtree(self.layout.etcd, ignore_errors=True)

    def _check(self) -> None:
        found = claims.read(self.layout)
        if found is None or found.id != self.claim.id:
            where = f" on {found.node}" if found else ""
            raise SupersededError(f"another control plane went on with the cluster{where}; this one ends")

    def _update(self, **changes: Any) -> None:
        for name, value in changes.items():
            setattr(self.report, name, value)
        # What cannot be reported on a full home is in the log.
        with suppress(OSError):
            self.report.write(self.layout)
