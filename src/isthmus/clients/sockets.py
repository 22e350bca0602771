"""What a program must know of its own network before it listens: its address, and ports that are free."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack
from ipaddress import IPv4Address

# Never sent to (RFC 5737): connecting a UDP socket only asks the kernel for a route.
_ELSEWHERE = ("192.0.2.1", 9)


def own_address() -> IPv4Address:
    """Return the address that this host, or namespace, sends from.

    Raises:
        OSError: it has no way out.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as asked:
        asked.connect(_ELSEWHERE)
        return IPv4Address(asked.getsockname()[0])


def address_of(name: str) -> IPv4Address:
    """Return a host's address by its name.

    Raises:
        OSError: nobody knows it.
    """
    return IPv4Address(socket.gethostbyname(name))


def free_ports(count: int) -> list[int]:
    """Return ports that nobody listens on; another program may still be faster."""
    with ExitStack() as held:
        return list(_ports(count, held))


def listens(address: str, port: int, timeout_s: float = 2) -> bool:
    """Tell whether somebody takes TCP connections there."""
    try:
        with socket.create_connection((address, port), timeout_s):
            return True
    except OSError:
        return False


def _ports(count: int, held: ExitStack) -> Iterator[int]:
    for _ in range(count):
        yield int(held.enter_context(socket.create_server(("", 0))).getsockname()[1])
