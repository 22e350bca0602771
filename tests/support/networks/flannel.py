"""Machines in namespaces with a flanneld each, over a real etcd; the plugins are the built ones."""

from __future__ import annotations

import json
import socket
import subprocess
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, field
from ipaddress import IPv4Address
from pathlib import Path
from threading import Thread

from isthmus.clients.cni.attachments import Attachments, Ours
from isthmus.clients.cni.plugins import Plugins, parse_list
from isthmus.clients.etcd.store import Etcd
from isthmus.filters.drivers.flannel.files import network_flannel_config, network_flannel_list
from isthmus.model.network import Driver
from isthmus.model.node_network import shared_prefix
from tests.support.networks.namespaces import TCP, Namespace, Nodes
from tests.support.servers.etcd import FLANNEL_PREFIX, PASSWORDS, Cluster, program
from tests.support.wait import wait

RANGE, SUBNET_PREFIX = "10.129.0.0/16", 24
PLUGINS = ("flannel", "bridge", "host-local", "loopback")


def plugins(folder: Path) -> Path:
    """Lay the plugins down under the names of their types, as a node has them."""
    folder.mkdir()
    for name in PLUGINS:
        (folder / name).symlink_to(program(f"cni-{name}"))
    return folder


@dataclass
class FlannelNodes:
    """Machines of Flannel's network."""

    stack: ExitStack
    nodes: Nodes
    cluster: Cluster
    folder: Path
    daemons: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @classmethod
    def of(cls, stack: ExitStack, cluster: Cluster, folder: Path, backend: str, *names: str) -> FlannelNodes:
        """Make machines; flanneld is not running yet."""
        made = cls(stack, Nodes.of(stack, *names), cluster, folder)
        plugins(folder / "plugins")
        with closing(Etcd(cluster.access("flannel"))) as etcd:
            config = network_flannel_config(RANGE, SUBNET_PREFIX, backend)
            etcd.put(f"{FLANNEL_PREFIX}config", json.dumps(config))
        for place in made.nodes.places.values():
            place.do(Path("/proc/sys/net/ipv4/ip_forward").write_text, "1")
            bring_port(stack, place, cluster.members[0].client_port)
        return made

    def start(self, name: str) -> None:
        """Run flanneld on a machine, as the service does, and wait for its subnet."""
        own = self.folder / name
        own.mkdir(exist_ok=True)
        tls = self.cluster.folder / "tls"
        flags = {
            "etcd-endpoints": self.cluster.members[0].endpoint,
            "etcd-prefix": FLANNEL_PREFIX.rstrip("/"),
            "etcd-cafile": tls / "ca.crt",
            "etcd-certfile": tls / "client.crt",
            "etcd-keyfile": tls / "client.key",
            "etcd-username": "flannel",
            "iface": self.nodes.address(name),
            "subnet-file": own / "subnet.env",
            "iptables-forward-rules": "false",
        }
        words = [program("flanneld"), *(f"--{key}={value}" for key, value in flags.items())]
        environment = {"FLANNELD_ETCD_PASSWORD": PASSWORDS["flannel"], "PATH": "/usr/sbin:/usr/bin"}
        with (own / "flanneld.log").open("ab") as log:
            run = lambda: subprocess.Popen(words, env=environment, stdout=log, stderr=log)  # noqa: E731
            self.daemons[name] = self.nodes.places[name].do(run)
        self.stack.callback(self.stop, name)
        wait((own / "subnet.env").exists, timeout_s=120)

    def stop(self, name: str, *, kill: bool = False) -> None:
        """Stop flanneld, or let it die."""
        if daemon := self.daemons.pop(name, None):
            (daemon.kill if kill else daemon.terminate)()
            try:
                daemon.wait(30)
            except subprocess.TimeoutExpired:
                # Flanneld may miss SIGTERM while it waits for etcd; systemd ends such a one too.
                daemon.kill()
                daemon.wait(30)

    def attachments(self, name: str) -> Attachments:
        """Return what makes pods on a machine; its methods must run there (`Namespace.do`)."""
        own = self.folder / name
        reported = network_flannel_list(str(own / "cni"), str(own / "subnet.env"))
        return Attachments(
            Driver.FLANNEL,
            Ours(parse_list(json.dumps(reported), name)),
            Plugins(self.folder / "plugins"),
            own / "records",
        )

    def pod(self, name: str, job: int) -> Namespace:
        """Enter a pod."""
        return self.nodes.pod(name, job, shared_prefix(Driver.FLANNEL))

    def subnet(self, name: str) -> dict[str, str]:
        """Return what flanneld wrote."""
        lines = (self.folder / name / "subnet.env").read_text().split()
        return dict(line.removeprefix("FLANNEL_").split("=") for line in lines)

    def addresses_in_use(self, name: str) -> set[IPv4Address]:
        """Return what host-local has given to pods of a machine."""
        folder = self.folder / name / "cni/networks/flannel"
        return {IPv4Address(path.name) for path in folder.glob("*.*.*.*")}


def bring_port(stack: ExitStack, place: Namespace, port: int) -> None:
    """Let a place reach a server on this process's loopback at its own."""
    server = place.open(TCP, "127.0.0.1", port)
    server.listen()
    stack.callback(server.close)

    def pump(source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                target.sendall(data)
        with suppress(OSError):
            target.shutdown(socket.SHUT_WR)

    def accept() -> None:
        near = server.accept()[0]
        try:
            far = socket.create_connection(("127.0.0.1", port))
        except OSError:
            near.close()
            raise
        for pair in ((near, far), (far, near)):
            Thread(target=pump, args=pair, daemon=True).start()

    def accept_all() -> None:
        while server.fileno() >= 0:
            # Also while the server does not run.
            with suppress(OSError):
                accept()

    Thread(target=accept_all, daemon=True).start()
