"""One start's data, from a wish to a folder that etcd may be started on: `settling` and `saving` with their parts.

The disk of the node matters where the user wants it, and once more where he wants the home again.
"""

from __future__ import annotations

import os
from pathlib import Path

from isthmus.clients import process
from isthmus.clients.etcd.gateway import Access, Gateway
from isthmus.clients.etcd.snapshot import Snapshots
from isthmus.controlplane import programs
from isthmus.controlplane.commands.wishes import Wishes
from isthmus.controlplane.data import lineage, nodedisk
from isthmus.controlplane.data.nodedisk import Disk
from isthmus.controlplane.data.saving import Saver, Told
from isthmus.controlplane.data.settling import Restore, Settled, Settling
from isthmus.controlplane.launching import Launch, See
from isthmus.controlplane.layout import Layout
from isthmus.controlplane.programs import Site
from isthmus.controlplane.settings import DataPlace, Settings

# A restore reads the snapshot once; of the job's memory nothing else is used yet.
_RESTORE_MEMORY = "512MiB"
_RESTORE_S = 300.0


def wanted(known: Settings, asked: Wishes) -> DataPlace:
    """Return where the data shall be: the user's word, else the site's."""
    return DataPlace(asked.data) if asked.data else known.data


def node() -> str:
    """Return this node's name."""
    return os.environ.get("SLURMD_NODENAME") or os.uname().nodename


def disk(known: Settings, asked: Wishes, layout: Layout) -> Disk | None:
    """Return this node's folder where it matters.

    Raises:
        ControlPlaneError: it is not safe.
    """
    claim = lineage.read(layout)
    if DataPlace.NODE not in {wanted(known, asked), claim.data if claim else None}:
        return None
    return nodedisk.of(layout, known.data_dir)


def settle(layout: Layout, place: DataPlace, on_disk: Disk | None, launch: Launch, see: See) -> Settled:
    """Bring the newest data where they are wanted.

    Raises:
        ControlPlaneError: none can be used.
    """
    return Settling(layout, place, on_disk, node(), _restore(launch, see)).run()


def saver(job: str, layout: Layout, settled: Settled, site: Site) -> Saver | None:
    """Return what takes snapshots; None for data on the home. Tell what was lost in either case."""
    claim = settled.claim
    on_home = claim is None or claim.data is DataPlace.HOME
    every_s = 0 if on_home else site.settings.snapshot_s
    told = Told(job, node(), str(settled.folder), settled.source.value, settled.warnings, every_s)
    told.write(layout)
    if claim is None or on_home:
        return None
    pair = layout.certificate("apiserver-etcd-client"), layout.key("apiserver-etcd-client")

    def etcd() -> Snapshots:
        return Snapshots(Gateway(Access((site.etcd,), layout.certificate("etcd-ca"), *pair)))

    return Saver(layout, claim, etcd, told)


def _restore(launch: Launch, see: See) -> Restore:
    def restore(snapshot: Path, folder: Path) -> None:
        arguments = programs.restore(see(snapshot), see(folder))
        process.run(launch("etcdutl", arguments, _RESTORE_MEMORY), timeout_s=_RESTORE_S)

    return restore
