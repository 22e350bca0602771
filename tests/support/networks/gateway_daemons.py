"""What members' daemons do about gateways, with real packets and over a real etcd."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from isthmus.clients.etcd.store import Etcd
from isthmus.model.network import Ranges
from isthmus.network.gateways.active import CALL_S, PAUSES_S, Election, Gateway, is_news
from isthmus.network.state.codec import Value, encode, key_of
from isthmus.network.state.keys import Keys
from isthmus.network.state.store import Store
from isthmus.network.state.view import View
from tests.support.networks.gateways import ALICE_SEEN, MEMBERS, WEB, GatedNetworks, exposure
from tests.support.networks.pod_networks import OPEN, PODS, SERVED
from tests.support.servers.etcd import Cluster, running
from tests.support.wait import wait

KEYS = Keys("test")


class Daemon:
    """One member's; it can die."""

    def __init__(self, gated: GatedNetworks, cluster: Cluster, name: str) -> None:
        self._gated, self._name = gated, name
        self.dead = threading.Event()
        store = Store(Etcd(cluster.access()), KEYS, Ranges(PODS))
        self.view = View(store.load())
        self._feed = store.feed(self.view.snapshot)
        work = [self._follow]
        if name in gated.held:
            election = Election(Etcd(cluster.access(timeout_s=CALL_S, pauses_s=PAUSES_S)), KEYS, name)
            member = gated.world.state.nodes[name]
            self._gateway = Gateway(member, election, store, self.view, gated.held[name], lambda: True)
            work.append(self._lead)
        self._threads = [threading.Thread(target=each, daemon=True) for each in work]
        for thread in self._threads:
            thread.start()

    def _follow(self) -> None:
        known = None
        for snapshot in self._feed:
            self.view.set(snapshot)
            if known != snapshot.state.gateway:
                known = snapshot.state.gateway
                self._gated.follow(self._name, snapshot.state)

    def _lead(self) -> None:
        while not self.dead.is_set():
            seen = self.view.snapshot.state
            self.view.wait(is_news(seen), self._gateway.turn(seen))

    def die(self) -> None:
        """End it; what it did stays."""
        self.dead.set()
        self._feed.close()
        for thread in self._threads:
            thread.join()


@dataclass
class Daemons:
    """All of them.

    Attributes:
        cluster: their etcd.
        gated: what they look after.
        made: by member.
    """

    cluster: Cluster
    gated: GatedNetworks
    made: dict[str, Daemon]

    @classmethod
    @contextmanager
    def of(cls, folder: Path) -> Iterator[Daemons]:
        """Let them begin, and a gateway lead out."""
        with running(folder) as cluster, ExitStack() as stack:
            gated = GatedNetworks.of(stack, [exposure(WEB)])
            etcd, known = Etcd(cluster.access()), gated.world.state
            values: list[Value] = [*known.nodes.values(), *known.users.values(), *known.jobs.values()]
            for value in [*values, *known.exposed.values()]:
                etcd.put(KEYS.path(key_of(value)), encode(value))
            daemons = cls(cluster, gated, {name: Daemon(gated, cluster, name) for name in MEMBERS})
            try:
                wait(lambda: daemons.leading and daemons.goes_out(), timeout_s=30)
                yield daemons
            finally:
                for each in daemons.made.values():
                    each.die()

    @property
    def leading(self) -> str:
        """The gateway that leads out, as the pods' node knows."""
        return self.made["n1"].view.snapshot.state.gateway

    def goes_out(self, wait_s: float = 1.0) -> bool:
        """Return whether alice's pod is answered from outside; never is it seen with another address."""
        seen = self.gated.pod(1).asks(OPEN, SERVED, wait_s=wait_s)
        assert seen in ("", str(ALICE_SEEN)), seen
        return bool(seen)
