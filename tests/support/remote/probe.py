"""One end of a connection, as a program of the standard library alone: tests bring it to nodes and into pods.

probe.py serve PORT            answer TCP and UDP on all addresses
probe.py tcp|udp HOST PORT     print what the server says, within four seconds
probe.py connect HOST PORT     whether TCP connects; the server need not speak first
probe.py icmp HOST             an echo, without rights (ping_group_range)
probe.py knock HOST PORT       a new connection, and more over an open one, every 20 ms until it is ended
"""

import os
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress

TIMEOUT_S = 4
KNOCK_S, KNOCK_TIMEOUT_S = 0.02, 0.2


def serve(port: int) -> None:
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    udp.bind(("", port))
    tcp = socket.create_server(("", port))
    print("ready", flush=True)

    def answer_udp() -> None:
        while True:
            _, peer = udp.recvfrom(100)
            udp.sendto(f"{socket.gethostname()} {peer[0]}".encode(), peer)

    threading.Thread(target=answer_udp, daemon=True).start()
    while True:
        connection, peer = tcp.accept()
        with connection:
            connection.sendall(f"{socket.gethostname()} {peer[0]}".encode())


def tcp(host: str, port: str) -> bytes:
    with socket.create_connection((host, int(port)), TIMEOUT_S) as connection:
        return connection.recv(100)


def connect(host: str, port: str) -> bytes:
    with socket.create_connection((host, int(port)), TIMEOUT_S):
        return b"connected"


def udp(host: str, port: str) -> bytes:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.settimeout(TIMEOUT_S)
        client.sendto(b"?", (host, int(port)))
        return client.recv(100)


def icmp(host: str) -> bytes:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP) as client:
        client.settimeout(TIMEOUT_S)
        # RFC 792: an echo request; the kernel fills in identifier and checksum.
        client.sendto(struct.pack("!BBHHH", 8, 0, 0, 0, os.getpid() & 0xFFFF), (host, 0))
        return client.recv(100) and b"echo"


def knock(host: str, port: int) -> None:
    kept = socket.create_connection((host, port), TIMEOUT_S)
    kept.setblocking(False)
    print("ready", flush=True)
    while True:
        # A lost one is asked about by the next, from another port.
        with suppress(OSError):
            kept.send(b"k")
        with suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
            udp.sendto(b"?", (host, port))
        with suppress(OSError), socket.create_connection((host, port), KNOCK_TIMEOUT_S) as connection:
            connection.send(b"n")
        time.sleep(KNOCK_S)


if __name__ == "__main__":
    kind, *words = sys.argv[1:]
    if kind == "serve":
        serve(int(words[0]))
    if kind == "knock":
        knock(words[0], int(words[1]))
    asks: dict[str, Callable[..., bytes]] = {"tcp": tcp, "connect": connect, "udp": udp, "icmp": icmp}
    print(asks[kind](*words).decode())
