"""The kubelet: everything wired together, and its tasks.

pods      list and watch; a worker per pod
jobs      Slurm is asked for all jobs at once, by isthmus-jobsd where it is
feed      what that says
channel   supervisors dial in
server    the API server dials in
node      register, lease, status
refresh, claims, gates, recorder, services

A task that fails is logged and begun anew after a pause: the others, and all pods, go on. SIGTERM ends the kubelet
and no pod; so does an upgrade of the program, or other settings: the control plane starts it again.
"""

from __future__ import annotations

import asyncio
import logging
import os
import platform
import signal
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path

from isthmus.clients.job_feed import connect
from isthmus.clients.kube.api import Kube, KubeError
from isthmus.clients.process import ProcessError, run
from isthmus.clients.slurm.offer import offer, rooms
from isthmus.clients.slurm.pod_jobs import PodJobs
from isthmus.images import ids, manifests
from isthmus.images.workspace import Workspace
from isthmus.kubelet import renewal, settings
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
from isthmus.kubelet.pods.decision.state import Pauses
from isthmus.kubelet.pods.gates import Gates
from isthmus.kubelet.pods.manager import Pods
from isthmus.kubelet.pods.parts import Address, Parts
from isthmus.kubelet.pods.store import PodFolder, Store
from isthmus.kubelet.settings import SettingsError, Told
from isthmus.kubelet.slurm.feed import Feed
from isthmus.kubelet.slurm.jobs import Jobs, Slurm
from isthmus.kubelet.status.recorder import Recorder
from isthmus.model.network import Driver
from isthmus.model.slurm.cluster import NodeRoom
from isthmus.support import private
from isthmus.support.backoff import Backoff

FIRST_S, LONGEST_S = 1.0, 30.0
# A loop that went on for so long begins again soon.
_SETTLED_S = 60.0
# At once, on the home.
_WRITES = 4

_log = logging.getLogger("isthmus-kubelet")
Loop = Callable[[], Awaitable[None]]


class Kubelet:
    """All of it.

    Args:
        told: where everything is.
        slurm: submits and asks; tests give their own.
        offered: what Slurm offers.
        puller: gets images.
        pauses: of workers.
        feed: has jobs and nodes, so that Slurm need not be asked.
        rooms: what nodes of a partition have free.
    """

    def __init__(
        self,
        told: Told,
        slurm: Slurm,
        offered: Offer,
        puller: Pull = quiet_pull,
        pauses: Pauses | None = None,
        feed: Feed | None = None,
        rooms: Callable[[str], list[NodeRoom]] = rooms,
    ) -> None:
        self._feed, self._rooms = feed, rooms
        self._told, self._slurm, self._offered, self._puller = told, slurm, offered, puller
        self._pauses = pauses or Pauses()
        self._collecting = Collecting(told.folder / "images", told.folder / "pods", told.image_days, told.image_gib)
        self.port = 0

    async def run(self, ended: asyncio.Event) -> None:
        """Run until `ended`.

        Raises:
            KubeError: the API server's kubeconfig cannot be used.
        """
        async with AsyncExitStack() as stack:
            kube = await Kube.connect(self._told.cluster / "kubelet.kubeconfig")
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
        """Open both ports and put the parts together; return the loops."""
        told, pki = self._told, self._told.cluster / "pki"
        tls = await asyncio.to_thread(server_context, Authority(pki), told.address, pki)
        port = stack.enter_context(bound(told.address, told.channel_port))
        parts = self._parts(kube, Address(told.address, port.getsockname()[1]))
        stack.callback(parts.images.stop)
        stack.callback(parts.jobs.stop)
        stack.callback(parts.gangs.stop)
        pods = Pods(parts)
        stack.push_async_callback(pods.stop)
        channel = ChannelServer(pods)
        await channel.serve(port, tls)
        stack.callback(channel.stop)
        routes = server.Server(pods, Access(kube, told.pods.node))
        self.port = await routes.start(told.address, told.port, server.context(pki))
        stack.push_async_callback(routes.stop)
        node = NodeLoop(kube, parts.config, host(told, self.port), self._offered, parts.jobs.quiet_s, self._feed)

        async def work() -> None:
            await node.register()
            await pods.run()

        async def address() -> None:
            # Beside the pods: supervisors wait for it, nobody else does.
            await _tell_address(parts.store.folders(), parts.address)
            await asyncio.Event().wait()

        fed = {"feed": self._feed.run} if self._feed else {}
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
            "gates": Gates(kube, told.pods.node).run,
            "recorder": parts.recorder.run,
            "services": parts.services.run,
        }

    def _parts(self, kube: Kube, address: Address) -> Parts:
        told = self._told
        scratch = os.environ.get("APPTAINER_TMPDIR") or os.environ.get("TMPDIR") or "/var/tmp"  # noqa: S108
        credentials = Path(told.pods.home, ".apptainer/docker-config.json")
        images = told.folder / "images"
        recorder = Recorder(kube, told.pods.node)
        authfile = credentials if credentials.exists() else None
        local = told.volumes / f"isthmus-{os.getuid()}" / "volumes"
        return Parts(
            kube=kube,
            store=Store(told.folder / "pods"),
            jobs=Jobs(self._slurm, feed=self._feed),
            images=Images(
                Workspace(images, Path(scratch), authfile, manifests.architecture(), root_alone=ids.is_root_alone()),
                self._puller,
                lambda: self._collecting.collect(all_unused=True),
            ),
            config=Config(kube, told.pods, Tokens(kube)),
            claims=Claims(kube, told.pods.node, told.folder / "volumes", local),
            recorder=recorder,
            services=Services(kube, recorder, told=told.pods.driver is Driver.PRIVATE),
            authority=Authority(told.cluster / "pki"),
            address=address,
            gangs=Gangs(kube, self._rooms, self._pauses.gang),
            pauses=self._pauses,
        )


async def _tell_address(folders: list[PodFolder], address: Address) -> None:
    """Write to all pods' folders where the kubelet is.

    Raises:
        OSError: some could not be written; the others were.
    """
    free = asyncio.Semaphore(_WRITES)

    async def one(folder: PodFolder) -> None:
        async with free:
            await asyncio.to_thread(folder.set_address, address.host, address.port)

    done = await asyncio.gather(*map(one, folders), return_exceptions=True)
    # One that has gone meanwhile needs no address.
    if failed := [error for error in done if isinstance(error, OSError) and not isinstance(error, FileNotFoundError)]:
        raise failed[0]


async def guarded(name: str, loop: Loop, backoff: Backoff | None = None) -> None:
    """Run a loop that never ends; begin it anew when it does."""
    backoff = backoff or Backoff(FIRST_S, LONGEST_S)
    while True:
        began_s = time.monotonic()
        try:
            await loop()
            _log.error("%s ended; it begins anew", name)
        except KubeError as error:
            _log.warning("%s: %s", name, error)
        except Exception:
            _log.exception("%s failed; it begins anew", name)
        if time.monotonic() - began_s >= _SETTLED_S:
            backoff.reset()
        await asyncio.sleep(backoff.next_s())


def host(told: Told, port: int) -> Host:
    """Return what the node object says of this host."""
    release = platform.freedesktop_os_release()
    try:
        runtime = run(["apptainer", "--version"], timeout_s=10).stdout.split()[-1]
    except (ProcessError, IndexError):
        runtime = "unknown"
    machine = Path("/etc/machine-id")
    return Host(
        address=told.address,
        port=port,
        kubelet=f"v{told.version}",
        runtime=f"apptainer://{runtime}",
        architecture=manifests.architecture(),
        kernel=platform.release(),
        os_image=release.get("PRETTY_NAME", "Linux"),
        machine_id=machine.read_text(encoding="utf-8").strip() if machine.exists() else "",
        boot_id=Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8").strip(),
    )


def reach_directly(address: str) -> None:
    """Keep a proxy, which images may need, out of the way to the cluster's own API server."""
    for name in ("no_proxy", "NO_PROXY"):
        os.environ[name] = ",".join(filter(None, (os.environ.get(name), address)))


async def _run(told: Told) -> None:
    ended = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    anew = asyncio.create_task(_anew(ended))
    slurm, feed = PodJobs(told.slurm_prefix), Feed(partial(connect, told.source)) if told.source else None
    offered, free = partial(offer, told.slurm_prefix), partial(rooms, prefix=told.slurm_prefix)
    await Kubelet(told, slurm, offered, feed=feed, rooms=free).run(ended)
    anew.cancel()


async def _anew(ended: asyncio.Event) -> None:
    await renewal.changed(renewal.installed, lambda: renewal.of(settings.FILE))
    _log.info("the program or %s has changed; the kubelet begins anew", settings.FILE)
    ended.set()


def main() -> int:
    """Run until SIGTERM; exit status 2 for settings that cannot be used, 1 for what a later start may heal."""
    os.umask(private.UMASK)
    logging.basicConfig(level=os.environ.get("ISTHMUS_LOG", "INFO"), format="%(asctime)s %(levelname)s %(message)s")
    try:
        told = settings.read(os.environ)
        reach_directly(told.address)
        asyncio.run(_run(told))
    except SettingsError as error:
        print(error, file=sys.stderr)
        return 2
    except (KubeError, OSError) as error:
        _log.error("%s", error)
        return 1
    return 0
