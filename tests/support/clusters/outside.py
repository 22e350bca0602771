"""A host outside of the cluster: this one, with a server that says who calls it, and remembers the callers.

As root it sees each packet to its port, also of connections that never come about.
"""

from __future__ import annotations

import itertools
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field

KEPT = b"k"
_QUEUE = 128
# Between two looks whether the watch has to end.
_LOOK_S = 0.5
_ETH_P_IP, _PORTED = 0x0800, (socket.IPPROTO_TCP, socket.IPPROTO_UDP)


@dataclass
class Outside:
    """This host, as pods see it.

    Attributes:
        address: where its server is.
        port: its port, of TCP and UDP.
        sources: whose packets came.
        new_s: when it was asked over a new TCP connection.
        kept_s: when more came over a connection that stays open.
    """

    address: str
    port: int
    sources: set[str] = field(default_factory=set)
    new_s: list[float] = field(default_factory=list)
    kept_s: list[float] = field(default_factory=list)
    _closed: threading.Event = field(default_factory=threading.Event)

    def asks(self, address: str, port: int, timeout_s: float = 4) -> str:
        """Return what a server of the probe says at an address; empty where nobody answers."""
        with suppress(OSError), socket.create_connection((address, port), timeout_s) as connection:
            return connection.recv(100).decode()
        return ""

    def gap_s(self, since_s: float) -> float:
        """Return the longest time without a new connection from some moment on."""
        times = [since_s, *(each for each in self.new_s if each > since_s)]
        return max(later - earlier for earlier, later in itertools.pairwise(times))

    def _serve_tcp(self, server: socket.socket) -> None:
        with suppress(OSError):
            while True:
                connection, peer = server.accept()
                self.sources.add(peer[0])
                threading.Thread(target=self._answer, args=(connection, peer[0]), daemon=True).start()

    def _answer(self, connection: socket.socket, peer: str) -> None:
        with suppress(OSError), connection:
            connection.sendall(f"outside {peer}".encode())
            while kind := connection.recv(1):
                (self.kept_s if kind == KEPT else self.new_s).append(time.monotonic())

    def _serve_udp(self, server: socket.socket) -> None:
        with suppress(OSError):
            while True:
                _, peer = server.recvfrom(100)
                if not peer:
                    return
                self.sources.add(peer[0])
                server.sendto(f"outside {peer[0]}".encode(), peer)

    def _watch(self, packets: socket.socket) -> None:
        asked = socket.inet_aton(self.address)
        with suppress(OSError):
            while not self._closed.is_set():
                with suppress(TimeoutError):
                    packet = packets.recv(60)
                    header = (packet[0] & 0xF) * 4
                    port = int.from_bytes(packet[header + 2 : header + 4], "big")
                    if (packet[9] in _PORTED, packet[16:20], port) == (True, asked, self.port):
                        self.sources.add(socket.inet_ntoa(packet[12:16]))


def address_towards(host: str) -> str:
    """Return this host's address on the way to another one."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        asking.connect((host, 9))
        return str(asking.getsockname()[0])


@contextmanager
def serving(address: str) -> Iterator[Outside]:
    """Serve at an address of this host's, at any port that is free."""
    with ExitStack() as stack:
        tcp = stack.enter_context(socket.create_server((address, 0), backlog=_QUEUE))
        udp = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        outside = Outside(address, tcp.getsockname()[1])
        udp.bind((address, outside.port))
        work: list[tuple[Callable[[socket.socket], None], socket.socket]] = [
            (outside._serve_tcp, tcp),
            (outside._serve_udp, udp),
        ]
        with suppress(PermissionError):
            packets = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(_ETH_P_IP))
            packets.settimeout(_LOOK_S)
            work.append((outside._watch, stack.enter_context(packets)))
        threads = [threading.Thread(target=serve, args=(server,), daemon=True) for serve, server in work]
        for thread in threads:
            thread.start()
        try:
            yield outside
        finally:
            outside._closed.set()
            for server in (tcp, udp):
                with suppress(OSError):
                    server.shutdown(socket.SHUT_RDWR)
            for thread in threads:
                thread.join()
