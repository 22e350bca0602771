"""The kubelet's composition root: it connects the parts and runs their loops as tasks.

pods      a reflector of the node's pods, and a worker per pod
jobs      the state of all Slurm jobs, in one query
feed      job updates from isthmus-jobsd, where it is configured
channel   server for supervisors
server    the kubelet API (exec, logs, port-forward, metrics) for the API server
node      registration, lease and status of the node object
figures   counts for the site, where the user lets it have them
refresh, claims, gates, recorder, services

A task that fails is logged and restarted after a backoff; the other tasks and all pods continue. SIGTERM ends the
kubelet and no pod. So does an upgrade of the program or a change of its settings: the control plane then starts it
again.
"""

from __future__ import annotations

import asyncio
import logging
import os
import platform
import random
import signal
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from functools import partial
from ipaddress import IPv4Address
from pathlib import Path

from isthmus.clients.job_feed import connect
from isthmus.clients.kube.api import Kube, KubeError
from isthmus.clients.process import ProcessError, run
from isthmus.clients.slurm.offer import offer, rooms
from isthmus.clients.slurm.pod_jobs import PodJobs
from isthmus.images import ids, manifests
from isthmus.images.workspace import Workspace
from isthmus.kubelet import metrics, renewal
from isthmus.kubelet import settings as settings_file
from isthmus.kubelet.api import server
from isthmus.kubelet.api.access import Access
from isthmus.kubelet.channel import ChannelServer, bound
from isthmus.kubelet.credentials import Authority, server_context
from isthmus.kubelet.gangs.loop import Gangs
from isthmus.kubelet.images.collecting import Collecting
from isthmus.kubelet.images.manager import Images, Pull, quiet_pull
from isthmus.kubelet.node.loop import NodeLoop, Offer
from isthmus.kubelet.node.node_object import Host
from isthmus.kubelet.objects.claims import Claims
from isthmus.kubelet.objects.config import Config
from isthmus.kubelet.objects.services import Services
from isthmus.kubelet.objects.tokens import Tokens
from isthmus.kubelet.pods.binding import Binder
from isthmus.kubelet.pods.decision.state import Pauses
from isthmus.kubelet.pods.manager import Pods
from isthmus.kubelet.pods.parts import Address, Parts
from isthmus.kubelet.pods.store import PodFolder, Store
from isthmus.kubelet.settings import Settings, SettingsError
from isthmus.kubelet.slurm.feed import Feed
from isthmus.kubelet.slurm.jobs import Jobs, Slurm
from isthmus.kubelet.status.recorder import Recorder
from isthmus.model.network import Driver
from isthmus.model.slurm.cluster import NodeRoom
from isthmus.support import private
from isthmus.support.backoff import Backoff

FIRST_S, LONGEST_S = 1.0, 30.0
# A loop that ran for so long is restarted after the shortest backoff.
_STABLE_S = 60.0
# Longest time between two reports of figures.
FIGURES_S = 60.0
# Concurrent writes to the home.
_WRITES = 4

_log = logging.getLogger("isthmus-kubelet")
Loop = Callable[[], Awaitable[None]]


class Kubelet:
    """Owns the tasks of one kubelet process.

    Args:
        settings: addresses, folders and limits.
        slurm: submits, cancels and lists jobs.
        offered: returns the cluster's nodes, partitions and limits.
        puller: pulls images.
        pauses: delays of the pod workers.
        feed: provides jobs and nodes from isthmus-jobsd; None polls Slurm instead.
        rooms: returns the free resources of a partition's nodes.
    """

    def __init__(
        self,
        settings: Settings,
        slurm: Slurm,
        offered: Offer,
        puller: Pull = quiet_pull,
        pauses: Pauses | None = None,
        feed: Feed | None = None,
        rooms: Callable[[str], list[NodeRoom]] = rooms,
    ) -> None:
        self._feed, self._rooms = feed, rooms
        self._settings, self._slurm, self._offered, self._puller = settings, slurm, offered, puller
        self._pauses = pauses or Pauses()
        self._collecting = Collecting(
            settings.folder / "images", settings.folder / "pods", settings.image_days, settings.image_gib
        )
        self.port = 0

    async def run(self, ended: asyncio.Event) -> None:
        """Run until `ended`.

        Raises:
            KubeError: the kubeconfig cannot be used.
        """
        async with AsyncExitStack() as stack:
            kube = await Kube.connect(self._settings.cluster / "kubelet.kubeconfig")
            stack.push_async_callback(kube.close)
            loops = await self._start(kube, stack)
            tasks = [asyncio.create_task(guarded(name, loop), name=name) for name, loop in loops.items()]
            try:
                await ended.wait()
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)

    async def _start(self, kube: Kube, stack: AsyncExitStack) -> dict[str, Loop]:
        """Open both ports, create the parts and return their loops."""
        settings, pki = self._settings, self._settings.cluster / "pki"
        tls = await asyncio.to_thread(server_context, Authority(pki), settings.address, pki)
        port = stack.enter_context(bound(settings.address, settings.channel_port))
        parts = self._parts(kube, Address(settings.address, port.getsockname()[1]))
        stack.callback(parts.images.stop)
        stack.callback(parts.jobs.stop)
        stack.callback(parts.gangs.stop)
        pods = Pods(parts)
        stack.push_async_callback(pods.stop)
        channel = ChannelServer(pods)
        await channel.serve(port, tls)
        stack.callback(channel.stop)
        routes = server.Server(pods, Access(kube, settings.pods.node))
        self.port = await routes.start(settings.address, settings.port, server.context(pki))
        stack.push_async_callback(routes.stop)
        node = NodeLoop(kube, parts.config, host(settings, self.port), self._offered, parts.jobs.quiet_s, self._feed)

        async def work() -> None:
            await node.register()
            await pods.run()

        async def address() -> None:
            # Concurrently with the pods: only supervisors wait for the address.
            await _publish_address(parts.store.folders(), parts.address)
            await asyncio.Event().wait()

        fed = {"feed": self._feed.run} if self._feed else {}
        if self._feed and settings.figures:
            fed["figures"] = partial(_report, self._feed, pods)
        return {
            **fed,
            "pods": work,
            "address": address,
            "jobs": parts.jobs.run,
            "refresh": pods.refresh,
            "lease": node.lease,
            "node": node.status,
            "claims": parts.claims.run,
            "images": self._collecting.run,
            "binding": Binder(kube, parts.config, parts.recorder, node.read_labels).run,
            "recorder": parts.recorder.run,
            "services": parts.services.run,
        }

    def _parts(self, kube: Kube, address: Address) -> Parts:
        settings = self._settings
        scratch = os.environ.get("APPTAINER_TMPDIR") or os.environ.get("TMPDIR") or "/var/tmp"  # noqa: S108
        credentials = Path(settings.pods.home, ".apptainer/docker-config.json")
        images = settings.folder / "images"
        recorder = Recorder(kube, settings.pods.node)
        authfile = credentials if credentials.exists() else None
        local = settings.volumes / f"isthmus-{os.getuid()}" / "volumes"
        return Parts(
            kube=kube,
            store=Store(settings.folder / "pods"),
            jobs=Jobs(self._slurm, feed=self._feed),
            images=Images(
                Workspace(images, Path(scratch), authfile, manifests.architecture(), root_alone=ids.is_root_alone()),
                self._puller,
                lambda: self._collecting.collect(all_unused=True),
            ),
            config=Config(kube, settings.pods, Tokens(kube)),
            claims=Claims(kube, settings.pods.node, settings.folder / "volumes", local),
            recorder=recorder,
            services=Services(
                kube, recorder, enabled=settings.pods.driver is Driver.PRIVATE, node=IPv4Address(settings.address)
            ),
            authority=Authority(settings.cluster / "pki"),
            address=address,
            gangs=Gangs(kube, self._rooms, self._pauses.gang),
            pauses=self._pauses,
        )


async def _publish_address(folders: list[PodFolder], address: Address) -> None:
    """Write the channel's address to all pods' folders.

    Raises:
        OSError: some writes failed; the others are done.
    """
    free = asyncio.Semaphore(_WRITES)

    async def one(folder: PodFolder) -> None:
        async with free:
            await asyncio.to_thread(folder.set_address, address.host, address.port)

    done = await asyncio.gather(*map(one, folders), return_exceptions=True)
    # A folder that was removed meanwhile needs no address.
    if failed := [error for error in done if isinstance(error, OSError) and not isinstance(error, FileNotFoundError)]:
        raise failed[0]


async def _report(feed: Feed, pods: Pods) -> None:
    """Report figures to isthmus-jobsd, for ever."""
    while True:
        # All kubelets lose the daemon, and find it again, at the same time.
        await asyncio.sleep(FIGURES_S * random.uniform(0.5, 1))  # noqa: S311
        feed.report(metrics.figures(pods.all()))


async def guarded(name: str, loop: Loop, backoff: Backoff | None = None) -> None:
    """Run a loop for ever; restart it with a backoff when it ends or fails."""
    backoff = backoff or Backoff(FIRST_S, LONGEST_S)
    while True:
        began_s = time.monotonic()
        try:
            await loop()
            _log.error("%s ended; it is restarted", name)
        except KubeError as error:
            _log.warning("%s: %s", name, error)
        except Exception:
            _log.exception("%s failed; it is restarted", name)
        if time.monotonic() - began_s >= _STABLE_S:
            backoff.reset()
        await asyncio.sleep(backoff.next_s())


def host(settings: Settings, port: int) -> Host:
    """Return this host's properties for the node object."""
    release = platform.freedesktop_os_release()
    try:
        runtime = run(["apptainer", "--version"], timeout_s=10).stdout.split()[-1]
    except (ProcessError, IndexError):
        runtime = "unknown"
    machine = Path("/etc/machine-id")
    return Host(
        address=settings.address,
        port=port,
        kubelet=f"v{settings.version}",
        runtime=f"apptainer://{runtime}",
        architecture=manifests.architecture(),
        kernel=platform.release(),
        os_image=release.get("PRETTY_NAME", "Linux"),
        machine_id=machine.read_text(encoding="utf-8").strip() if machine.exists() else "",
        boot_id=Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8").strip(),
    )


async def _run(settings: Settings) -> None:
    ended = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    restart = asyncio.create_task(_watch_for_changes(ended))
    slurm, feed = PodJobs(settings.slurm_prefix), Feed(partial(connect, settings.source)) if settings.source else None
    offered, free = partial(offer, settings.slurm_prefix), partial(rooms, prefix=settings.slurm_prefix)
    await Kubelet(settings, slurm, offered, feed=feed, rooms=free).run(ended)
    restart.cancel()


async def _watch_for_changes(ended: asyncio.Event) -> None:
    await renewal.changed(renewal.installed, lambda: renewal.of(settings_file.FILE))
    _log.info("the program or %s has changed; the kubelet restarts", settings_file.FILE)
    ended.set()


def main() -> int:
    """Run until SIGTERM; exit status 2 for invalid settings, 1 for errors that a later start may not meet."""
    os.umask(private.UMASK)
    logging.basicConfig(level=os.environ.get("ISTHMUS_LOG", "INFO"), format="%(asctime)s %(levelname)s %(message)s")
    try:
        settings = settings_file.read(os.environ)
        asyncio.run(_run(settings))
    except SettingsError as error:
        print(error, file=sys.stderr)
        return 2
    except (KubeError, OSError) as error:
        _log.error("%s", error)
        return 1
    return 0
