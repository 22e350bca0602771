"""Network namespaces for tests on the real kernel: each a thread that lives in one, and in mounts of its own.

Nothing has a name on this machine and nothing is left behind, not even after kill -9: what the threads hold ends with
the process. A socket opened, or a program started, by a place's thread is in that place.
"""

from __future__ import annotations

import ctypes
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, field
from ipaddress import IPv4Address
from threading import Thread, get_native_id

import pytest

from isthmus.clients.netlink.networks import Kernel
from isthmus.model.node_network import NAMESPACE

NEWNS, NEWNET = 0x20000, 0x40000000
REC, PRIVATE = 0x4000, 0x40000
LIBC = ctypes.CDLL(None, use_errno=True)
# linux/in.h, linux/in6.h
IP_PKTINFO, IPV6_RECVPKTINFO = 8, 49
TCP, UDP = socket.SOCK_STREAM, socket.SOCK_DGRAM

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="making network namespaces needs root")

PROBE = """
import socket, sys
kind, address, port, source, wait_s = sys.argv[1:]
probe = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, int(kind))
probe.settimeout(float(wait_s))
if source and ":" in address:
    probe.bind((source, 0))
elif source:
    address_here, _, port_here = source.partition(":")
    probe.bind((address_here, int(port_here or 0)))
probe.connect((address, int(port)))
probe.send(b"who am I?")
print(probe.recv(99).decode())
"""


def checked(result: int) -> None:
    if result:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


class Namespace:
    """A network namespace: a new one, or the one a path leads to as another place sees it."""

    def __init__(self, path: str = "", seen_by: Namespace | None = None) -> None:
        self._worker = ThreadPoolExecutor(1)
        self.thread = self._worker.submit(get_native_id).result()
        if path:
            handle = (seen_by or self).do(os.open, path, os.O_RDONLY)
            self.do(lambda: checked(LIBC.setns(handle, NEWNET)))
            os.close(handle)
        else:
            self.do(self._unshare)
            self.ip("link set lo up")

    def _unshare(self) -> None:
        checked(LIBC.unshare(NEWNS | NEWNET))
        checked(LIBC.mount(b"none", b"/", None, REC | PRIVATE, None))
        os.makedirs("/run/netns", exist_ok=True)
        checked(LIBC.mount(b"none", b"/run/netns", b"tmpfs", 0, None))

    def do(self, work: Callable, *arguments):
        """Call a function here."""
        return self._worker.submit(work, *arguments).result()

    def close(self) -> None:
        """Leave; the namespace ends with the last that holds it."""
        self._worker.shutdown()

    def run(
        self, *argv: str, user: int | None = None, check: bool = True, text: str = ""
    ) -> subprocess.CompletedProcess:
        """Run a program here, as another user if asked to."""
        more = {"input": text, "timeout": 120, "cwd": "/", "check": check}
        if user is not None:
            more |= {"user": user, "group": user, "extra_groups": []}
        return self.do(lambda: subprocess.run(argv, capture_output=True, text=True, **more))

    def ip(self, command: str) -> str:
        """Run iproute2."""
        return self.run("ip", *command.split()).stdout

    def open(self, kind: int, address: object = "", port: int = 0) -> socket.socket:
        """Open a socket here, bound to an address."""
        six = ":" in str(address)
        opened = self.do(socket.socket, socket.AF_INET6 if six else socket.AF_INET, kind)
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if six:
            opened.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        opened.bind((str(address), port))
        return opened

    def serve(self, address: object, port: int, kind: int = TCP, name: bytes = b"") -> socket.socket:
        """Answer with the caller's address, or a name."""
        server = self.open(kind, address, port)
        if kind == TCP:
            server.listen()
        elif server.family == socket.AF_INET6:
            server.setsockopt(socket.IPPROTO_IPV6, IPV6_RECVPKTINFO, 1)
        else:
            server.setsockopt(socket.IPPROTO_IP, IP_PKTINFO, 1)
        Thread(target=_answer_all, args=(server, kind, name), daemon=True).start()
        return server

    def asks(
        self,
        address: object,
        port: int,
        kind: int = TCP,
        user: int | None = None,
        bind: object = "",
        wait_s: float = 15,
    ) -> str:
        """Return a server's answer to a process of this place: its address as seen there; empty without an answer."""
        script = [sys.executable, "-ISc", PROBE, str(int(kind)), str(address), str(port), str(bind), str(wait_s)]
        return self.run(*script, user=user, check=False).stdout.strip()

    def refused(self, address: object, port: int, kind: int = TCP, user: int | None = None, bind: object = "") -> bool:
        """Return whether a server cannot be reached; what may be lost only is waited for shortly."""
        return not self.asks(address, port, kind, user, bind, wait_s=0.5)

    def pings(self, address: object, wait_s: float = 15) -> bool:
        """Return whether an address answers an ICMP echo request, sent as ordinary users may."""
        six = ":" in str(address)
        family, protocol, asks, answers = (
            (socket.AF_INET6, socket.IPPROTO_ICMPV6, 128, 129) if six else (socket.AF_INET, socket.IPPROTO_ICMP, 8, 0)
        )
        with self.do(socket.socket, family, socket.SOCK_DGRAM, protocol) as probe:
            probe.settimeout(wait_s)
            try:
                probe.sendto(bytes([asks, 0, 0, 0, 0, 0, 0, 1]), (str(address), 0))
                return probe.recv(99)[0] == answers
            except OSError:
                return False


def _answer_all(server: socket.socket, kind: int, name: bytes) -> None:
    answer = _answer_packet if kind == UDP else _answer_connection
    while server.fileno() >= 0:
        # A client that went away, or that a filter keeps from its answer, is no reason to leave the others alone.
        with suppress(OSError):
            answer(server, name)


def _answer_packet(server: socket.socket, name: bytes) -> None:
    _, (asked,), _, client = server.recvmsg(99, 99)
    # A machine with many addresses answers from the one that was asked.
    six = server.family == socket.AF_INET6
    answer_from = asked if six else (*asked[:2], bytes(4) + asked[2][8:] + bytes(4))
    server.sendmsg([name or client[0].encode()], [answer_from], 0, client)


def _answer_connection(server: socket.socket, name: bytes) -> None:
    connection, client = server.accept()
    with connection:
        connection.settimeout(5)
        connection.recv(99)
        connection.send(name or client[0].encode())


@dataclass
class Nodes:
    """Machines on one network, 192.0.2.0/24, each in a place of its own."""

    stack: ExitStack
    switch: Namespace
    places: dict[str, Namespace] = field(default_factory=dict)

    @classmethod
    def of(cls, stack: ExitStack, *names: str) -> Nodes:
        switch = stack.enter_context(closing(Namespace()))
        switch.ip("link add switch up type bridge")
        nodes = cls(stack, switch)
        for name in names:
            nodes.add(name)
        return nodes

    def add(self, name: str) -> Namespace:
        """Plug in one more machine."""
        place = self.stack.enter_context(closing(Namespace()))
        self.places[name] = place
        self.switch.ip(f"link add {name} master switch up type veth peer name eth0 netns {place.thread}")
        place.ip(f"addr add {self.address(name)}/24 dev eth0")
        place.ip("link set eth0 up")
        return place

    def address(self, name: str) -> IPv4Address:
        """Return a machine's address."""
        return IPv4Address("192.0.2.1") + list(self.places).index(name)

    def kernel(self, name: str) -> Kernel:
        """Return what makes pod networks on a machine; its methods must run there (`Namespace.do`)."""
        return self.places[name].do(Kernel)

    def pod(self, name: str, job: int, prefix: str = NAMESPACE) -> Namespace:
        """Enter a pod."""
        return self.stack.enter_context(closing(Namespace(f"/run/netns/{prefix}{job}", self.places[name])))
