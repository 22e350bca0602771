"""Makes a host's resolver ask the node's DNS for the cluster's domain, besides its own servers.

With systemd-resolved a drop-in of the role sends it the domain alone. Elsewhere /etc/resolv.conf belongs to nobody in
particular: DHCP clients, NetworkManager or a container engine write it whenever they like. So the daemon looks at it
in each pass and puts our server in front where it is missing; those that were there stay behind it, for the time that
ours does not run. What they are is read again each time too: they answer for all other names, and ours must never
forward to itself.
"""

from __future__ import annotations

import errno
from enum import StrEnum
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path

from isthmus.network.dns.records import HOST_ADDRESS
from isthmus.support import durable

FILE = Path("/etc/resolv.conf")
OURS = f"nameserver {HOST_ADDRESS}"

Server = IPv4Address | IPv6Address


class HostResolver(StrEnum):
    """By what the host resolves the cluster's domain."""

    RESOLV_CONF = "resolv.conf"
    RESOLVED = "systemd-resolved"
    NONE = "none"


def upstreams(text: str) -> tuple[Server, ...]:
    """Return the servers of a resolv.conf(5) that are not ours."""
    words = [line.split() for line in text.splitlines()]
    servers = [_server(line[1]) for line in words if len(line) > 1 and line[0] == "nameserver"]
    return tuple(each for each in servers if each is not None and each != HOST_ADDRESS)


def wanted(text: str, how: HostResolver) -> str:
    """Return what the file should hold: ours first, or not at all; every other line as it is."""
    lines = [line for line in text.splitlines() if line.split()[:2] != ["nameserver", str(HOST_ADDRESS)]]
    first = next((place for place, line in enumerate(lines) if line.startswith("nameserver")), len(lines))
    if how is HostResolver.RESOLV_CONF:
        lines.insert(first, OURS)
    return "".join(f"{line}\n" for line in lines)


def follow(how: HostResolver, path: Path = FILE) -> tuple[Server, ...]:
    """Bring the file up to date; return the servers for other names.

    Raises:
        OSError: it cannot be read or written.
    """
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return ()
    want = wanted(text, how)
    if want.splitlines() != text.splitlines():
        _replace(path.resolve(), want)
    return upstreams(text)


def _replace(path: Path, text: str) -> None:
    try:
        durable.write(path, text, mode=path.stat().st_mode & 0o777)
    except OSError as error:
        # Container engines mount it into the host's place, and a mount cannot be renamed over.
        if error.errno != errno.EBUSY:
            raise
        path.write_text(text, encoding="utf-8")


def _server(text: str) -> Server | None:
    try:
        return ip_address(text)
    except ValueError:
        return None
