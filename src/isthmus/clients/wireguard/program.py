"""WireGuard by a program in userspace, wireguard-go, over its socket (wireguard.com/xplatform).

The program makes the device when it starts, and the device ends with it; systemd runs it.
"""

from __future__ import annotations

import base64
import socket
import time
from collections.abc import Iterable, Iterator
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path

from isthmus.clients.wireguard.device import WireGuardError
from isthmus.clients.wireguard.keys import public_key
from isthmus.model.networks.wireguard import DEVICE, Device, Peer

FOLDER = Path("/run/wireguard")
# How long for a program that has just been started.
START_S = 5.0
_PAUSE_S = 0.05
_TIMEOUT_S = 10.0
_REMEDY = "look at `systemctl status isthmus-wireguard`"


class ProgramTunnel:
    """The device of a program that listens in a folder.

    Args:
        name: of the interface.
        folder: of the socket.
        start_s: how long `make` waits for it.
    """

    def __init__(self, name: str = DEVICE, folder: Path = FOLDER, start_s: float = START_S) -> None:
        self._name, self._start_s = name, start_s
        self._path = folder / f"{name}.sock"

    def read(self) -> Device | None:
        """See Tunnel."""
        try:
            return _device(self._ask("get=1\n\n"))
        except (FileNotFoundError, ConnectionRefusedError):
            return None
        except OSError as error:
            raise WireGuardError(f"{self._path}: {error}; {_REMEDY}") from error

    def make(self) -> None:
        """See Tunnel.

        Raises:
            WireGuardError: the program does not run.
        """
        until = time.monotonic() + self._start_s
        while self.read() is None:
            if time.monotonic() >= until:
                raise WireGuardError(f"nobody listens at {self._path}; {_REMEDY}")
            time.sleep(_PAUSE_S)

    def set_key(self, private: bytes, port: int) -> None:
        """See Tunnel."""
        self._set([f"private_key={private.hex()}", f"listen_port={port}"])

    def change(self, gone: Iterable[str], new: Iterable[Peer]) -> None:
        """See Tunnel."""
        lines = [line for key in gone for line in (f"public_key={_hex(key)}", "remove=true")]
        for peer in new:
            lines += [
                f"public_key={_hex(peer.public_key)}",
                f"endpoint={peer.address}:{peer.port}",
                "replace_allowed_ips=true",
                f"allowed_ip={IPv4Network(peer.address)}",
            ]
        if lines:
            self._set(lines)

    def wake(self, keys: Iterable[str]) -> None:
        """See Tunnel; a keepalive is sent when it is switched on."""
        known = [_hex(key) for key in keys]
        for seconds in (1, 0):
            lines = [
                line
                for key in known
                for line in (f"public_key={key}", "update_only=true", f"persistent_keepalive_interval={seconds}")
            ]
            if lines:
                self._set(lines)

    def close(self) -> None:
        """See Tunnel."""

    def _set(self, lines: Iterable[str]) -> None:
        try:
            self._ask("\n".join(["set=1", *lines, "", ""]))
        except OSError as error:
            raise WireGuardError(f"{self._path}: {error}; {_REMEDY}") from error

    def _ask(self, text: str) -> list[tuple[str, str]]:
        """Return the answer's lines.

        Raises:
            OSError: nobody listens, or the connection broke.
            WireGuardError: the program refused.
        """
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asking:
            asking.settimeout(_TIMEOUT_S)
            asking.connect(str(self._path))
            asking.sendall(text.encode())
            lines = list(_lines(asking))
        errno = dict(lines).get("errno", "0")
        if errno != "0":
            # What was asked has the private key in it.
            raise WireGuardError(f"the program at {self._path} refused a change with error {errno}; see its log")
        return lines


def _lines(answering: socket.socket) -> Iterator[tuple[str, str]]:
    """Yield names and values up to the empty line, which ends an answer."""
    with answering.makefile("r", encoding="ascii", errors="replace") as file:
        for line in file:
            if line == "\n":
                return
            name, _, value = line.rstrip("\n").partition("=")
            yield name, value


def _device(lines: list[tuple[str, str]]) -> Device:
    public, port, peers, handshakes = "", 0, {}, {}
    key = ""
    found: dict[str, list[str]] = {}
    for name, value in [*lines, ("public_key", "")]:
        if name == "public_key":
            if key:
                peers[key] = _read_peer(key, found)
            key, found = _text(value), {}
        elif not key and name == "private_key":
            public = _public(value)
        elif not key and name == "listen_port":
            port = int(value)
        elif name == "last_handshake_time_sec" and value != "0":
            handshakes[key] = int(value)
        else:
            found.setdefault(name, []).append(value)
    return Device(public, port, peers, handshakes)


def _read_peer(key: str, found: dict[str, list[str]]) -> Peer:
    """Read a peer; one of another shape than ours has no address, and is set again."""
    allowed, (endpoint, *_) = found.get("allowed_ip", []), found.get("endpoint", [""])
    address, _, length = allowed[0].partition("/") if len(allowed) == 1 else ("", "", "")
    port = endpoint.rpartition(":")[2]
    if length != "32" or not port.isdigit():
        return Peer(key, IPv4Address(0), 0)
    return Peer(key, IPv4Address(address), int(port))


def _public(private: str) -> str:
    return public_key(bytes.fromhex(private)) if private.strip("0") else ""


def _hex(key: str) -> str:
    return base64.b64decode(key).hex()


def _text(value: str) -> str:
    return base64.b64encode(bytes.fromhex(value)).decode()
