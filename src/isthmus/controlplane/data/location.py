"""One start's data: from what the user chose to a folder that etcd may be started on, by `restorer` and `snapshotter`.

The disk of the node matters where the user wants it, and once more where they want the home again.
"""

from __future__ import annotations

import os
from pathlib import Path

from isthmus.clients import process
from isthmus.clients.etcd.gateway import Access, Gateway
from isthmus.clients.etcd.snapshot import Snapshots
from isthmus.controlplane import programs
from isthmus.controlplane.commands.user_options import UserOptions
from isthmus.controlplane.data import claims, node_disk
from isthmus.controlplane.data.node_disk import Disk
from isthmus.controlplane.data.restorer import Restore, Restored, Restorer
from isthmus.controlplane.data.snapshotter import DataReport, Saver
from isthmus.controlplane.launcher import Launch, See
from isthmus.controlplane.layout import Layout
from isthmus.controlplane.programs import Site
from isthmus.controlplane.settings import DataLocation, Settings

# A restore reads the snapshot once; of the job's memory nothing else is used yet.
_RESTORE_MEMORY = "512MiB"
_RESTORE_S = 300.0


def wanted(known: Settings, asked: UserOptions) -> DataLocation:
    """Return the location of the data: the user's choice, else the site's."""
    return DataLocation(asked.data) if asked.data else known.data


def node() -> str:
    """Return this node's name."""
    return os.environ.get("SLURMD_NODENAME") or os.uname().nodename


def disk(known: Settings, asked: UserOptions, layout: Layout) -> Disk | None:
    """Return this node's folder where it matters.

    Raises:
        ControlPlaneError: it is not safe.
    """
    claim = claims.read(layout)
    if DataLocation.NODE not in {wanted(known, asked), claim.data if claim else None}:
        return None
    return node_disk.of(layout, known.data_dir)


def places(layout: Layout, on_disk: Disk | None) -> tuple[Path, ...]:
    """Return where etcd's data may be on this node."""
    return (layout.etcd, on_disk.etcd) if on_disk else (layout.etcd,)


def restore_newest(layout: Layout, place: DataLocation, on_disk: Disk | None, launch: Launch, see: See) -> Restored:
    """Bring the newest data where they are wanted.

    Raises:
        ControlPlaneError: none can be used.
    """
    return Restorer(layout, place, on_disk, node(), _restore(launch, see)).run()


def saver(job: str, layout: Layout, restored: Restored, site: Site) -> Saver | None:
    """Return what takes snapshots; None for data on the home. Report what was lost in either case."""
    claim = restored.claim
    on_home = claim is None or claim.data is DataLocation.HOME
    every_s = 0 if on_home else site.settings.snapshot_s
    report = DataReport(job, node(), str(restored.folder), restored.source.value, restored.warnings, every_s)
    report.write(layout)
    if claim is None or on_home:
        return None
    pair = layout.certificate("apiserver-etcd-client"), layout.key("apiserver-etcd-client")

    def etcd() -> Snapshots:
        return Snapshots(Gateway(Access((site.etcd,), layout.certificate("etcd-ca"), *pair)))

    return Saver(layout, claim, etcd, report)


def _restore(launch: Launch, see: See) -> Restore:
    def restore(snapshot: Path, folder: Path) -> None:
        arguments = programs.restore(see(snapshot), see(folder))
        process.run(launch("etcdutl", arguments, _RESTORE_MEMORY), timeout_s=_RESTORE_S)

    return restore
