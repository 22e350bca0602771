"""Before etcd starts: the newest data are brought to where they are wanted, and an old copy there is removed.

What is used in place stays as it is. All else is made beside its place, synced and renamed; then the claim changes.
A snapshot that is damaged is reported, and the one before it is used. A whole one that cannot be restored now is
not passed over: the start fails, and the next one may not.
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from secrets import token_hex

from isthmus.clients.etcd import snapshot as etcd_snapshot
from isthmus.clients.process import ProcessError
from isthmus.controlplane.data import claims, snapshots
from isthmus.controlplane.data.claims import Claim, Source
from isthmus.controlplane.data.node_disk import Disk
from isthmus.controlplane.data.snapshots import Snapshot
from isthmus.controlplane.errors import ControlPlaneError
from isthmus.controlplane.layout import Layout
from isthmus.controlplane.settings import DataLocation
from isthmus.support import durable

Restore = Callable[[Path, Path], None]
"""(snapshot, new folder): makes etcd's data of a snapshot; raises ProcessError."""

_NEW = ".etcd-"

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Restored:
    """Data that etcd may be started on.

    Attributes:
        folder: of etcd.
        source: where they came from.
        claim: theirs; None on the home of a cluster that never had its data elsewhere.
        warnings: what was lost, or might be.
    """

    folder: Path
    source: Source
    claim: Claim | None = None
    warnings: tuple[str, ...] = ()


@dataclass(slots=True)
class Restorer:
    """Brings the newest data to where they are wanted.

    Attributes:
        layout: the files on the home.
        wanted: the desired location of the data.
        disk: the folder on this node; None where neither the user nor the claim names a node's disk.
        node: this node's name.
        restore: makes data of a snapshot.
        warnings: collected on the way.
    """

    layout: Layout
    wanted: DataLocation
    disk: Disk | None
    node: str
    restore: Restore
    warnings: list[str] = field(default_factory=list)

    def run(self) -> Restored:
        """Restore; nobody else may write the data meanwhile.

        Raises:
            ControlPlaneError: there are data, and none of them can be used here.
            OSError: a disk is full, or worse.
        """
        claim = claims.read(self.layout)
        usable = claims.candidates(snapshots.listed(self.layout.snapshots), claim)
        is_here = claim is not None and claim.data is DataLocation.NODE and self._disk().belongs_to(claim.id)
        at_home = (self.layout.etcd / "member").is_dir()
        source = claims.newest(claim, is_here=is_here, at_home=at_home, usable=usable)
        stays = source.value == self.wanted.value
        begins_at_home = source is Source.NOTHING and self.wanted is DataLocation.HOME
        if not stays and not begins_at_home:
            claim = self._make(source, claim, usable)
        for warning in self.warnings:
            _log.warning("%s", warning)
        return Restored(self._target(), source, claim, tuple(self.warnings))

    def _target(self) -> Path:
        return self._disk().etcd if self.wanted is DataLocation.NODE else self.layout.etcd

    def _disk(self) -> Disk:
        if self.disk is None:
            # The claim came while this start waited for the one before it.
            raise ControlPlaneError(f"{self.layout.claim} names a node's disk since a moment ago; start again")
        return self.disk

    def _make(self, source: Source, before: Claim | None, usable: Sequence[Snapshot]) -> Claim:
        """Make data again where they are wanted, then let the claim name them."""
        new = _new(self._target().parent)
        base = self._fill(new, source, before, usable)
        known = snapshots.listed(self.layout.snapshots)
        claim = claims.next_claim(before, known, self.wanted, self.node, base)
        _sync_tree(new)
        shutil.rmtree(self._target(), ignore_errors=True)
        durable.move(new, self._target())
        if self.wanted is DataLocation.NODE:
            durable.write(self._disk().stamp, claim.id, 0o600)
        claims.write(self.layout, claim)
        if self.wanted is DataLocation.HOME:
            shutil.rmtree(self.layout.snapshots, ignore_errors=True)
            if self.disk is not None:
                shutil.rmtree(self.disk.etcd, ignore_errors=True)
        return claim

    def _fill(self, new: Path, source: Source, before: Claim | None, usable: Sequence[Snapshot]) -> str:
        """Fill a folder; return the base of the claim."""
        if source is Source.SNAPSHOT:
            return self._restore(new, before, usable)
        if source is Source.NOTHING:
            new.mkdir(mode=0o700)
            if before is not None:
                self.warnings.append(f"your cluster is empty: what it had on {before.node} was never saved")
            return ""
        shutil.copytree(self._disk().etcd if source is Source.NODE else self.layout.etcd, new)
        return claims.HOME if source is Source.HOME else ""

    def _restore(self, new: Path, before: Claim | None, usable: Sequence[Snapshot]) -> str:
        for snapshot in usable:
            path = self.layout.snapshots / snapshot.name
            if not self._restored(path, new):
                self.warnings.append(
                    f"snapshot {snapshot.name} is damaged: its hash is wrong; the one before it is next"
                )
                continue
            if not snapshot.is_final or snapshot != usable[0]:
                taken = datetime.fromtimestamp(path.stat().st_mtime, UTC).astimezone()
                where = f", on {before.node}," if before else ""
                self.warnings.append(f"your cluster is as of {taken:%F %T}: what was written later{where} is lost")
            return snapshot.name
        raise ControlPlaneError(
            f"each snapshot in {self.layout.snapshots} is damaged; bring back a whole one, or remove the cluster with "
            "`isthmus down --purge`"
        )

    def _restored(self, path: Path, new: Path) -> bool:
        """Make data of a whole snapshot. What fails for another reason, a full disk, is no reason to take an older."""
        try:
            if not etcd_snapshot.is_whole(path):
                return False
            self.restore(path, new)
        except (ProcessError, OSError) as error:
            remedy = "start again, or remove it to go on with the one before"
            raise ControlPlaneError(f"{path} could not be restored: {error}; {remedy}") from error
        return True


def _new(parent: Path) -> Path:
    """Return a name for data while they are made; what starts that broke off left goes.

    Each has its own: a restore may outlive the start that was killed, and must not write into the next one's.
    """
    for left in parent.glob(f"{_NEW}*"):
        shutil.rmtree(left, ignore_errors=True)
    return parent / (_NEW + token_hex(8))


def _sync_tree(folder: Path) -> None:
    for path in (*folder.rglob("*"), folder):
        durable.sync(path)
