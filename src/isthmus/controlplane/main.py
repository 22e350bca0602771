"""`python -m isthmus.controlplane`: the composition root of the control plane's job.

SIGTERM stops the cluster in order, within KillWait. SIGUSR1, which Slurm sends some time before
the limit, starts the handover: this job continues until its successor has its allocation (handover). Whatever
the API server has acknowledged is synced in etcd by then, and from a node's disk it is copied to the home before
the end, so neither loses a write.
"""

from __future__ import annotations

import asyncio
import logging
import os
import pwd
import shutil
import signal
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

from isthmus.clients import sockets
from isthmus.clients.slurm import own_jobs as slurm_jobs
from isthmus.clients.slurm.commands import SlurmError
from isthmus.controlplane import handover, job, settings
from isthmus.controlplane.commands import user_options
from isthmus.controlplane.data import location, node_disk, ownership
from isthmus.controlplane.data.node_disk import Disk
from isthmus.controlplane.errors import ControlPlaneError, UnansweredError
from isthmus.controlplane.launcher import SEEN, in_container, seen_in_container
from isthmus.controlplane.layout import RESERVATION, Home, Layout
from isthmus.controlplane.process_supervisor import Keeper
from isthmus.controlplane.programs import PORT_NAMES, Ports, Site
from isthmus.controlplane.run import Run, run
from isthmus.support import private
from isthmus.support.private import PrivateError

RESOLV_CONF = Path("/etc/resolv.conf")

_log = logging.getLogger(__name__)


def main() -> int:
    """Run the control plane of the user whose job this is."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    os.umask(private.UMASK)
    try:
        _run()
    except (ControlPlaneError, PrivateError, OSError) as error:
        _log.error("%s", error)
        return 1
    return 0


def _run() -> None:
    known, home = settings.read(), Home(Path.home())
    job_id = os.environ.get("SLURM_JOB_ID")
    if not job_id:
        raise ControlPlaneError("this is no Slurm job; start a control plane with `isthmus up`")
    private.check(home.folder)
    layout, asked = home.cluster, user_options.read(home.cluster)
    disk = location.disk(known, asked, layout)
    owned = ownership.take(layout, job_id, is_alive, on_disk=disk.folder if disk else None, report=_log.info)
    try:
        layout.purge.unlink(missing_ok=True)
        for folder in node_disk.sweep(known.data_dir, but=disk):
            _log.info("removed %s: its cluster is gone", folder)
        parts = _parts(known, asked, home, disk, owned)
        slurm = handover.Slurm(slurm_jobs.own_jobs, partial(submit_successor, known, layout))
        leaving = handover.Handover(slurm, job_id, lambda: handover.delay_s(os.environ, known.handover_s))
        asyncio.run(run(parts, lambda keeper: _listen(keeper, leaving)))
        leaving.insist()
        if disk and layout.purge.exists():
            shutil.rmtree(disk.folder)
            layout.purge.unlink()
    finally:
        owned.release()


def _parts(
    known: settings.Settings, asked: user_options.UserOptions, home: Home, disk: Disk | None, owned: ownership.Ownership
) -> Run:
    layout, job_id = home.cluster, os.environ["SLURM_JOB_ID"]
    launch, see = in_container(known.image, layout, disk), seen_in_container(layout, disk)
    restored = location.restore_newest(layout, location.wanted(known, asked), disk, launch, see)
    site = _site(known, asked, see(restored.folder))
    saver = location.saver(job_id, layout, restored, site)
    return Run(job_id, _user(), home, site, launch, owned.descriptors, _hosts(known), saver)


def is_alive(job_id: str) -> bool:
    """Ask Slurm whether a job may still run.

    Raises:
        UnansweredError: no answer.
    """
    try:
        return any(each.id == job_id for each in slurm_jobs.own_jobs() if each.state != "PENDING")
    except SlurmError as error:
        raise UnansweredError(str(error)) from error


def submit_successor(known: settings.Settings, layout: Layout) -> str:
    """Submit the job that takes over; return its id.

    Raises:
        ProcessError: Slurm refused, or did not answer.
    """
    wanted = job.submission(known, user_options.read(layout), layout, Path(sys.executable))
    return slurm_jobs.submit(wanted.options, wanted.script, job.environment(known))


def _listen(keeper: Keeper, leaving: handover.Handover) -> None:
    loop = asyncio.get_running_loop()

    def end() -> None:
        # A job that is ended on purpose has no successor.
        leaving.stop()
        keeper.stop()

    loop.add_signal_handler(signal.SIGTERM, end)
    loop.add_signal_handler(signal.SIGINT, end)
    loop.add_signal_handler(signal.SIGUSR1, leaving.start, keeper.stop)


def _site(known: settings.Settings, wanted: user_options.UserOptions, data: Path) -> Site:
    """Return the ports of this start: the usual ones in a pod network, else free ones."""
    if known.has_network:
        address, ports = sockets.own_address(), Ports()
    else:
        address = sockets.address_of(os.environ.get("SLURMD_NODENAME", "localhost"))
        ports = Ports(*sockets.free_ports(len(PORT_NAMES)))
    known = replace(known, memory_mib=wanted.memory_mib or known.memory_mib)
    figures = known.figures and wanted.figures
    return Site(known, Layout(SEEN), address, ports, _upstreams(RESOLV_CONF), wanted.audit, data, figures)


def _hosts(known: settings.Settings) -> tuple[str, ...]:
    if not known.has_network:
        return (os.environ.get("SLURMD_NODENAME", "localhost"),)
    reserved = f"{RESERVATION}.{_user()}"
    return (reserved, f"{reserved}.{known.network_domain}") if known.network_domain else (reserved,)


def _upstreams(path: Path) -> tuple[str, ...]:
    words = [line.split() for line in path.read_text(encoding="utf-8").splitlines()]
    return tuple(line[1] for line in words if line[:1] == ["nameserver"] and len(line) > 1)


def _user() -> str:
    return pwd.getpwuid(os.getuid()).pw_name
