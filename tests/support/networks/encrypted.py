"""Pod networks of which nodes encrypt what they send to one another, over a real etcd; and who listens on the wire."""

from __future__ import annotations

import socket
from contextlib import ExitStack
from dataclasses import replace
from ipaddress import IPv4Address
from pathlib import Path

from isthmus.clients.etcd.store import Etcd
from isthmus.model.networks.wireguard import OVERHEAD, PORT, Program
from isthmus.network.encryption.records import Records
from tests.support.networks.namespaces import TCP, UDP, Namespace
from tests.support.networks.pod_networks import MEMBERS, SETTINGS, PodNetworks
from tests.support.networks.wires import MTU, Wire
from tests.support.servers.etcd import Cluster

ENCRYPTED = replace(SETTINGS, wireguard_port=PORT)
SERVED = 5000


class Wiretap:
    """Sees all frames of the network between the nodes."""

    def __init__(self, world: World) -> None:
        self._socket = world.net.nodes.switch.do(socket.socket, socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2**22)
        self._socket.settimeout(0.3)
        self.frames: list[bytes] = []

    def hear(self) -> Wiretap:
        """Take all frames that came."""
        try:
            while True:
                self.frames.append(self._socket.recv(65535))
        except OSError:
            return self

    def udp(self, port: int) -> int:
        """How many frames to a port there were."""
        return len(self.sources(port))

    def sources(self, port: int) -> list[IPv4Address]:
        """Where frames to a port came from."""
        udp = [frame for frame in self.frames if frame[12:14] == b"\x08\0" and frame[23] == socket.IPPROTO_UDP]
        return [IPv4Address(frame[26:30]) for frame in udp if frame[36:38] == port.to_bytes(2, "big")]

    def close(self) -> None:
        """Hear no more."""
        self._socket.close()


class World:
    """Three members with alice's and bob's pods, of whom some encrypt."""

    def __init__(self, stack: ExitStack, cluster: Cluster, folder: Path, by: Program, encrypts: bool = True) -> None:
        self.stack = stack
        etcd = Etcd(cluster.access())
        stack.callback(etcd.close)
        # Several of these share an etcd, and one account there, so each is a cluster of its own.
        self.cluster = f"test/wireguard/{folder.name}"
        self.records = Records(etcd, self.cluster)
        self.net = PodNetworks.of(stack)
        places = self.net.nodes.places
        if not encrypts:
            for name in MEMBERS:
                self.net.filter(name)
            return
        # As daemons publish it: pods have room for what encryption adds.
        nodes = {name: replace(node, mtu=MTU - OVERHEAD) for name, node in self.net.state.nodes.items()}
        self.net.state = replace(self.net.state, nodes=nodes)
        self.wires = {
            name: Wire(name, places[name], self.net.nodes.address(name), self.records, folder, by) for name in MEMBERS
        }
        for name in MEMBERS:
            self._resize(name)
            self.net.filter(name, ENCRYPTED)
        for place in (*self.net.pods.values(), *places.values()):
            for kind in (TCP, UDP):
                stack.enter_context(place.serve("", SERVED, kind))

    def _resize(self, name: str) -> None:
        place, kernel, wanted = self.net.nodes.places[name], self.net.kernels[name], self.net.plan(name)
        for leg in wanted.legs.values():
            place.do(kernel.change_leg, replace(leg, mtu=0), leg)
        for pod in wanted.pods.values():
            place.do(kernel.change_pod, replace(pod, mtu=0), pod)

    def start(self, *names: str) -> None:
        """Begin to encrypt on some nodes."""
        for name in names:
            self.wires[name].start(self.stack)
        self.follow(*names)
        self.follow(*names)

    def follow(self, *names: str) -> None:
        """Make a pass on some nodes, or all."""
        for name in names or MEMBERS:
            assert self.wires[name].follow() == ""

    def pod(self, node: str, number: int = 1) -> Namespace:
        """Return a pod."""
        return self.net.pods[node, number]

    def reaches(self, node: str, other: str, number: int = 1) -> str:
        """Return as whom a pod on another node saw one on a node."""
        return self.pod(node, number).asks(self.net.pod_address(other, number), SERVED)

    def refused(self, node: str, other: str) -> bool:
        """Return whether alice's pod on another node cannot be reached."""
        return self.pod(node).refused(self.net.pod_address(other, 1), SERVED)
