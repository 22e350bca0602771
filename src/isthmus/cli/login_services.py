"""isthmus-login-services: brings the Services of a user's cluster into the user's login pod on this host.

isthmus-networkd has it started as the user, in the pod's network, and ended with the pod or the cluster. It watches the
API server as the kubelet does, and gives the daemon the whole table after a change, at most once in GATHER_S.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
from collections.abc import Callable
from ipaddress import AddressValueError, IPv4Address
from pathlib import Path
from urllib.parse import urlsplit

from isthmus.clients.kube.api import Kube, KubeError, Object
from isthmus.controlplane import settings
from isthmus.controlplane.errors import ControlPlaneError
from isthmus.controlplane.layout import Home
from isthmus.kubelet.objects import servicetable
from isthmus.kubelet.objects.servicetable import SERVICES, SLICES
from isthmus.kubelet.objects.watching import follow
from isthmus.model.network import Driver
from isthmus.model.services import Answering, ServicePort, bounded
from isthmus.network.api.client import ask
from isthmus.network.api.messages import JobServices, List, Request, Status
from isthmus.network.api.protocol import RequestError
from isthmus.network.bounds import LOGIN_FIRST
from isthmus.support.backoff import Backoff

# Changes within this time are one.
GATHER_S = 1.0
# Before what failed is tried again.
FIRST_S, LONGEST_S = 0.5, 60.0
# Between two looks whether there is another kubeconfig: of a cluster that was made again, with other keys.
LOOK_S = 15.0

_log = logging.getLogger("isthmus-login-services")
Table = dict[ServicePort, Answering]
Asked = Callable[[Request], dict[str, object]]


class Follower:
    """Follows one API server.

    Args:
        kube: the API server.
        put: gives the daemon a table; may raise RequestError or OSError, and is called in a thread.
        node: the address of the cluster's node, where its node ports answer.
    """

    def __init__(self, kube: Kube, put: Callable[[Table], None], node: IPv4Address | None = None) -> None:
        self._kube, self._put, self._node = kube, put, node
        self._known: dict[str, dict[str, Object]] = {}
        self._changed = asyncio.Event()

    async def run(self) -> None:
        """Follow it, for ever."""
        async with asyncio.TaskGroup() as group:
            for path in (SERVICES, SLICES):
                group.create_task(self._follow(path))
            group.create_task(self._bring())

    async def _follow(self, path: str) -> None:
        def listed(found: list[Object]) -> None:
            self._known[path] = {one["metadata"]["uid"]: one for one in found}
            self._changed.set()

        def changed(kind: str, one: Object) -> None:
            if kind == "DELETED":
                self._known[path].pop(one["metadata"]["uid"], None)
            else:
                self._known[path][one["metadata"]["uid"]] = one
            self._changed.set()

        await follow(self._kube, path, {}, listed, changed)

    async def _bring(self) -> None:
        brought: Table | None = None
        backoff = Backoff(FIRST_S, LONGEST_S)
        while True:
            await self._changed.wait()
            self._changed.clear()
            if len(self._known) < len((SERVICES, SLICES)):
                continue
            services, slices = (self._known[path].values() for path in (SERVICES, SLICES))
            table, _ = bounded(servicetable.table(services, slices, self._node))
            if table != brought:
                try:
                    await asyncio.to_thread(self._put, table)
                    brought = table
                    backoff.reset()
                except (RequestError, OSError) as error:
                    pause_s = backoff.next_s()
                    _log.warning("the network daemon has not taken Services: %s; again in %.1f s", error, pause_s)
                    self._changed.set()
                    await asyncio.sleep(pause_s)
            await asyncio.sleep(GATHER_S)


def pod(asked: Asked = ask) -> int:
    """Return the id of the caller's login pod on this host.

    Raises:
        RequestError: the daemon refused.
        OSError: it cannot be reached, or knows of none.
    """
    node = asked(Status())["node"]
    jobs = asked(List())["jobs"]
    for job in jobs if isinstance(jobs, list) else ():
        if job["id"] >= LOGIN_FIRST and job["nodes"] == [node]:
            return int(job["id"])
    raise OSError(f"there is no login pod of this user on {node}")


def put(table: Table, asked: Asked = ask) -> None:
    """Give the daemon a table for the pod that is there now."""
    asked(JobServices(pod(asked), table))


async def run(kubeconfig: Path, put_: Callable[[Table], None] = put) -> None:
    """Follow the cluster of a kubeconfig, and the next one where another is written."""
    backoff = Backoff(FIRST_S, LONGEST_S)
    while True:
        written = _written(kubeconfig)
        try:
            kube = await Kube.connect(kubeconfig)
        except KubeError as error:
            # It is written when the control plane is up, which may be soon.
            pause_s = backoff.next_s()
            _log.warning("%s; again in %.1f s", error, pause_s)
            await asyncio.sleep(pause_s)
            continue
        backoff.reset()
        following = asyncio.create_task(Follower(kube, put_, _node(kube.server)).run())
        try:
            while not following.done() and _written(kubeconfig) == written:
                await asyncio.wait([following], timeout=LOOK_S)
            if following.done():
                following.result()
        finally:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)
            await kube.close()


def _node(server: str) -> IPv4Address | None:
    """Return the node's address: with a private network, the control plane's."""
    try:
        return IPv4Address(urlsplit(server).hostname or "")
    except AddressValueError:
        return None


def _written(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns


def main() -> int:
    """Follow until SIGTERM; at once where Services have no addresses."""
    logging.basicConfig(level="INFO", format="%(levelname)s %(message)s")
    try:
        site = settings.read()
    except ControlPlaneError as error:
        print(error, file=sys.stderr)
        return 1
    if site.headless or site.driver is not Driver.PRIVATE:
        return 0
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    asyncio.run(run(Home(Path.home()).kubeconfig))
    return 1


if __name__ == "__main__":
    sys.exit(main())
