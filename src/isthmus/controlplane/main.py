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
from isthmus.controlplane.versions import course
from isthmus.controlplane.versions.course import Course, Request
from isthmus.controlplane.versions.plan import Image
from isthmus.controlplane.versions.trial import Trial
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
        slurm = handover.Slurm(slurm_jobs.own_jobs, partial(submit_successor, known, layout))
        leaving = handover.Handover(slurm, job_id, lambda: handover.delay_s(os.environ, known.handover_s))
        asyncio.run(_course(known, asked, home, disk, owned, Signals(leaving)).go())
        leaving.insist()
        if disk and layout.purge.exists():
            shutil.rmtree(disk.folder)
            layout.purge.unlink()
    finally:
        owned.release()


class Signals:
    """Slurm's signals, for the keeper that runs at the moment."""

    def __init__(self, leaving: handover.Handover) -> None:
        self._leaving = leaving
        self._keeper: Keeper | None = None
        self.is_over = False

    def heed(self, keeper: Keeper) -> None:
        """Send signals to a keeper; one that came before it was there counts."""
        self._keeper = keeper
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, self._end)
        loop.add_signal_handler(signal.SIGINT, self._end)
        loop.add_signal_handler(signal.SIGUSR1, self._leaving.start, self._stop)
        if self.is_over:
            keeper.stop()

    def _end(self) -> None:
        # A job that is ended on purpose has no successor.
        self._leaving.stop()
        self._stop()

    def _stop(self) -> None:
        self.is_over = True
        if self._keeper is not None:
            self._keeper.stop()


def _course(
    known: settings.Settings,
    asked: user_options.UserOptions,
    home: Home,
    disk: Disk | None,
    owned: ownership.Ownership,
    signals: Signals,
) -> Course:
    layout, job_id, see = home.cluster, os.environ["SLURM_JOB_ID"], seen_in_container(home.cluster, disk)
    places = location.places(layout, disk)
    course.recover(layout, places)
    launch = in_container(course.writer(layout, known.choices).file, layout, disk)
    restored = location.restore_newest(layout, location.wanted(known, asked), disk, launch, see)
    own = _site(known, asked, see(restored.folder))

    async def serve(image: Image, trial: Trial | None) -> bool:
        site = replace(own, kubernetes=image.kubernetes)
        saver = location.saver(job_id, layout, restored, site)
        start = in_container(image.file, layout, disk)
        parts = Run(job_id, _user(), home, site, start, owned.descriptors, _hosts(known), saver, trial)
        await run(parts, signals.heed)
        return not signals.is_over

    request = Request(asked.kubernetes, asked.kubernetes_again)
    run_name = f"{job_id}.{os.environ.get('SLURM_RESTART_COUNT', '0')}"
    return Course(layout, run_name, known.choices, request, restored, places, serve)


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
