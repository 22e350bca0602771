"""The host's own address, and free ports."""

from __future__ import annotations

import random
import socket
from contextlib import ExitStack
from ipaddress import IPv4Address
from itertools import islice
from pathlib import Path

# Never sent to (RFC 5737): connecting a UDP socket only asks the kernel for a route.
_ELSEWHERE = ("192.0.2.1", 9)
_EPHEMERAL = Path("/proc/sys/net/ipv4/ip_local_port_range")
# Lower ones are root's (ip_unprivileged_port_start).
_LOWEST = 1024


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


def free_ports(count: int, ephemeral: Path = _EPHEMERAL) -> list[int]:
    """Return ports that nobody listens on, and none that the kernel would give to a connection before they are used.

    Another program that picks a port may still be faster.

    Args:
        count: how many.
        ephemeral: returns the first and last port of connections (ip-sysctl).
    """
    first = int(ephemeral.read_text(encoding="ascii").split()[0])
    candidates = range(max(first // 2, _LOWEST), first)
    with ExitStack() as held:
        # Where connections begin at the lowest ports, any is as good as another.
        free = filter(None, (_hold(port, held) for port in random.sample(candidates, len(candidates))))
        found = list(islice(free, count))
        return found + [_hold(0, held) for _ in range(count - len(found))]


def listens(address: str, port: int, timeout_s: float = 2) -> bool:
    """Return whether somebody takes TCP connections there."""
    try:
        with socket.create_connection((address, port), timeout_s):
            return True
    except OSError:
        return False


def _hold(port: int, held: ExitStack) -> int:
    """Listen on a port, 0 for any, so that it is not found twice; return it, or 0 when somebody else does."""
    try:
        return int(held.enter_context(socket.create_server(("", port))).getsockname()[1])
    except OSError:
        return 0
