"""Daemons of nodes without a socket and a kernel, over a real etcd."""

import json
import threading
from contextlib import contextmanager
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path

from isthmus.clients.etcd.store import Etcd
from isthmus.clients.etcd.wire import prefix_range
from isthmus.model.network import Driver, Node, Ranges
from isthmus.network.api.messages import JobPrepare
from isthmus.network.api.operations import Dependencies, Operations
from isthmus.network.api.protocol import encode_request
from isthmus.network.dns.names import NodeNames
from isthmus.network.dns.records import DnsSettings
from isthmus.network.drivers.private.network import PrivateNetwork
from isthmus.network.gateways.settings import Gateways
from isthmus.network.node.converge import Converger
from isthmus.network.node.plugin import Watcher
from isthmus.network.node.rules import Settings
from isthmus.network.services.apply import PodServices
from isthmus.network.state.keys import Keys
from isthmus.network.state.store import Store
from isthmus.network.state.view import View
from tests.support.fakes.kernel import FakeFollower, FakeKernel
from tests.support.servers.etcd import PREFIX

ALICE, BOB = 2001, 2002
RANGES = Ranges(IPv4Network("10.64.0.0/16"))


class Daemon:
    """A node's daemon without a socket: it has `store` and `view`, follows etcd, and is asked in place."""

    def begin(self, operations):
        self.operations = operations
        self.feed = self.store.feed(self.view.snapshot)
        self.thread = threading.Thread(target=self._watch)
        self.thread.start()

    def _watch(self):
        for snapshot in self.feed:
            self.view.set(snapshot)

    def ask(self, request, uid=0):
        return json.loads(self.operations.answer(encode_request(request), uid))

    def close(self):
        self.feed.close()
        self.thread.join()


class Host(Daemon):
    """One without a kernel."""

    def __init__(self, cluster, name, folder: Path, gateways: Gateways | None = None):
        self.kernel = FakeKernel()
        self.store = Store(Etcd(cluster.access()), Keys("test"), RANGES)
        self.view = View(self.store.load())
        converger = Converger(name, self.kernel, FakeFollower([], "filter"), FakeFollower([], "names"))
        names = NodeNames(DnsSettings("cl", folder=folder), lambda: None)
        networks = {Driver.PRIVATE: PrivateNetwork(self.view, converger, names)}
        filtering = Settings(RANGES.pods, gateways=gateways)
        rest = (filtering, "cl", PodServices(IPv4Network("10.96.0.0/16")), Watcher(Path("/nonexistent")))
        self.begin(Operations(Dependencies(name, self.store, self.view, converger, networks, *rest)))


@contextmanager
def two_hosts(cluster, tmp_path, gateways: Gateways | None = None):
    """Give c1 and c2 of a cluster that is new."""
    etcd = Etcd(cluster.access())
    etcd.call("kv/deleterange", prefix_range(PREFIX))
    names = ("c1", "c2")
    for number, name in enumerate(names, 1):
        Store(etcd, Keys("test"), RANGES).announce(Node(name, IPv4Address(f"10.0.0.{number}")))
    made = [Host(cluster, name, tmp_path, gateways) for name in names]
    try:
        yield made
    finally:
        for host in made:
            host.close()


def prepare(job=7, uid=ALICE, nodes=("c1", "c2"), **changes):
    return JobPrepare(job, uid, "alice", "run", nodes, Driver.PRIVATE, **changes)


def code(reply):
    assert not reply["ok"]
    return reply["error"]["code"]
