"""Simulated nodes: whole node daemons, each in a network and a mount namespace of its own, with a real etcd.

The caller's process moves out of the machine's network too and holds the switch they are all plugged into; nothing has
a name outside, and all of it ends with the process. Nodes are forked, not started: one that has imported everything
shares its memory, so hundreds fit. What a node lacks is Slurm, and systemd: `systemctl` is `true` there,
or what the caller has for it.
"""

from __future__ import annotations

import ctypes
import gc
import logging
import os
import resource
import selectors
import signal
import socket
import subprocess
import sys
import time
import traceback
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path

from isthmus.clients.etcd.store import EtcdError
from isthmus.model.network import Node
from isthmus.network import main as networkd
from isthmus.network.api.client import ask
from isthmus.network.api.messages import Request, Status
from isthmus.network.api.protocol import encode_request, parse_reply
from isthmus.network.dns.hostresolver import HostResolver
from isthmus.network.dns.records import DnsSettings
from isthmus.network.logins.numbers import Logins
from isthmus.network.settings import Settings
from tests.bench.network_state import RANGES
from tests.support.networks.namespaces import LIBC, NEWNET, NEWNS, PRIVATE, REC, checked
from tests.support.servers.etcd import AS_DEPLOYED, Cluster, new_cluster
from tests.support.wait import wait

NETWORK = IPv4Network("198.18.0.0/15")
SWITCH, FIRST = NETWORK[1], NETWORK[257]
# As roles/network has it.
SERVICES = IPv4Network("10.96.0.0/12")
RULES = {
    "admins": [],
    "slurm": ["6817-6818"],
    "services": [],
    "hosts": [],
    "servers": [],
    "egress": [],
    "bounds": {"flows": 16384, "rate": 1000, "dns": 1000, "table": 262144, "established_s": 7440},
    "default": "allow",
}
DIE_WITH_PARENT, BIND = 1, 0x1000
# Ports of a Linux bridge (BR_MAX_PORTS), less one.
NODES_MAX = 1000
# All members hear of each new one, here on the same few cores.
STARTED_AT_ONCE = 16
TICKS_S = os.sysconf("SC_CLK_TCK")
# LimitNOFILE of the daemon's unit.
FILES = 16384


def member(index: int) -> Node:
    """Return the node of a number from 0, as etcd has it."""
    return Node(f"c{index + 1}", FIRST + index)


@dataclass(frozen=True)
class Machine:
    """A simulated node: its daemon's process and its socket."""

    node: Node
    process: int
    socket: Path

    @property
    def cpu_s(self) -> float:
        """What its daemon has worked, in seconds of one core."""
        return worked_s(self.process)

    @property
    def pods(self) -> int:
        """How many pods are there."""
        return int(ask(Status(), self.socket)["pods"])

    def wait(self) -> None:
        """Wait until it can be asked."""
        wait(self.socket.exists, error=lambda there: not there and self._ended(), timeout_s=300, interval_s=0.05)

    def _ended(self) -> bool:
        ended, status = os.waitpid(self.process, os.WNOHANG)
        if ended:
            print(self.socket.with_suffix(".log").read_text()[-2000:], f"{self.node.name} ended with {status}")
        return bool(ended)


@dataclass(frozen=True)
class Host:
    """What nodes have other than the machine they run on.

    Attributes:
        systemctl: the program in its place.
        passwd: the accounts; None for the machine's own.
        logins: of login pods; None for nodes without.
    """

    systemctl: Path = Path("/bin/true")
    passwd: Path | None = None
    logins: Logins | None = None


@dataclass
class Simulation:
    """The switch, etcd and the nodes so far."""

    folder: Path
    etcd: Cluster
    host: Host = field(default_factory=Host)
    machines: list[Machine] = field(default_factory=list)

    def grow(self, count: int) -> Sequence[Machine]:
        """Start nodes until there are so many; return once all daemons answer."""
        assert count <= NODES_MAX
        gc.collect()
        gc.freeze()
        while (there := len(self.machines)) < count:
            new = [self._start(member(index)) for index in range(there, min(there + STARTED_AT_ONCE, count))]
            for machine in new:
                machine.wait()
            self.machines += new
        return self.machines

    def _start(self, node: Node) -> Machine:
        here, there = os.pipe()
        moved, reported = os.pipe()
        process = os.fork()
        socket_path = self.folder / f"{node.name}.sock"
        if not process:
            try:
                _enter(reported, here, self.host)
                _be(node, self.folder, _settings(node, self.etcd, socket_path, self.host))
            except BaseException:
                traceback.print_exc()
            os._exit(1)
        os.read(moved, 1)
        wire = f"link add v{node.name} up master switch type veth peer name eth0 netns {process}"
        subprocess.run(["ip", *wire.split()], check=True)
        os.write(there, b"1")
        for each in (here, there, moved, reported):
            os.close(each)
        return Machine(node, process, socket_path)

    @property
    def etcd_cpu_s(self) -> float:
        """What etcd has worked, in seconds of one core."""
        return sum(worked_s(each.process.pid) for each in self.etcd.members if each.process)

    def end(self) -> None:
        """End daemons and etcd."""
        for machine in self.machines:
            os.kill(machine.process, signal.SIGKILL)
            os.waitpid(machine.process, 0)
        self.etcd.stop()


@contextmanager
def simulation(folder: Path, host: Host | None = None) -> Iterator[Simulation]:
    """Leave the machine's network for good, make the switch, start etcd; end all in the end."""
    checked(LIBC.unshare(NEWNS | NEWNET))
    checked(LIBC.mount(b"none", b"/", None, REC | PRIVATE, None))
    for command in ("link set lo up", "link add switch up type bridge", f"addr add {SWITCH}/15 dev switch"):
        subprocess.run(["ip", *command.split()], check=True)
    simulated = Simulation(folder, new_cluster(folder, address=str(SWITCH)), host or Host())
    try:
        # An etcd that does not wait for its disk would flatter.
        simulated.etcd.start(*AS_DEPLOYED)
        simulated.etcd.enable_auth()
        yield simulated
    finally:
        simulated.end()


def ask_all(machines: Iterable[Machine], request: Request, timeout_s: float = 120) -> list[float]:
    """Ask all nodes at once; return the seconds until each has done it, the slowest last.

    Raises:
        RequestError: one refused.
        TimeoutError: one did not answer.
    """
    line = encode_request(request)
    waiting = selectors.DefaultSelector()
    for machine in machines:
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(str(machine.socket))
        waiting.register(connection, selectors.EVENT_READ)
    begin = time.perf_counter()
    for key in waiting.get_map().values():
        key.fileobj.sendall(line)  # type: ignore[union-attr]
    taken: list[float] = []
    while waiting.get_map():
        ready = waiting.select(begin + timeout_s - time.perf_counter())
        if not ready:
            raise TimeoutError(f"{len(waiting.get_map())} nodes do not answer; see their logs")
        for key, _ in ready:
            connection = waiting.unregister(key.fileobj).fileobj  # type: ignore[assignment]
            with connection, connection.makefile("rb") as lines:
                parse_reply(lines.readline())
            taken.append(time.perf_counter() - begin)
    return taken


def worked_s(process: int) -> float:
    """Return the time a process has been on a core, with its threads and the programs it ran.

    Its own is exact, because etcd serves a small job within a tick of the clock; of programs only ticks are known.

    Raises:
        OSError: there is no such process.
    """
    clock = ctypes.c_int()
    if error := LIBC.clock_getcpuclockid(process, ctypes.byref(clock)):
        raise OSError(error, os.strerror(error))
    programs = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[13:15]
    return time.clock_gettime(clock.value) + sum(map(int, programs)) / TICKS_S


def _enter(reported: int, here: int, host: Host) -> None:
    """Become a node that is plugged in."""
    checked(LIBC.prctl(DIE_WITH_PARENT, signal.SIGKILL))
    checked(LIBC.unshare(NEWNS | NEWNET))
    checked(LIBC.mount(b"none", b"/run", b"tmpfs", 0, None))
    for source, target in ((host.systemctl, "/usr/bin/systemctl"), (host.passwd, "/etc/passwd")):
        if source:
            checked(LIBC.mount(os.fsencode(source), os.fsencode(target), None, BIND, None))
    os.write(reported, b"1")
    os.read(here, 1)


def _be(node: Node, folder: Path, reported: Settings) -> None:
    """Run the daemon; never returns while it lives."""
    for command in ("link set lo up", "link set eth0 up", f"addr add {node.address}/15 dev eth0"):
        subprocess.run(["ip", *command.split()], check=True)
    with (folder / f"{node.name}.log").open("w") as log:
        os.dup2(log.fileno(), sys.stderr.fileno())
    logging.basicConfig(level="WARNING", format="%(levelname)s %(message)s")
    resource.setrlimit(resource.RLIMIT_NOFILE, (FILES, FILES))
    for folder in (Path("/run/netns"), reported.dns.folder):
        folder.mkdir(parents=True)
    while True:
        try:
            networkd.start(reported).run()
        except EtcdError as error:
            # As systemd does, after a second.
            logging.error("started again: %s", error)
            time.sleep(1)


def _settings(node: Node, etcd: Cluster, socket_path: Path, host: Host) -> Settings:
    return Settings(
        cluster="test",
        node=node.name,
        address=IPv4Address(node.address),
        mtu=0,
        ranges=RANGES,
        etcd=etcd.access(),
        releases=False,
        slurm_prefix=Path("/usr"),
        dns=DnsSettings("isthmus"),
        resolver=HostResolver.NONE,
        rules=RULES,
        socket=socket_path.with_suffix(".users") / "networkd.sock",
        root_socket=socket_path,
        services=SERVICES,
        logins=host.logins,
    )
