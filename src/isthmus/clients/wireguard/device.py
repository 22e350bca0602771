"""What runs WireGuard: the same methods for the kernel and a program.

A private key is given once and never asked for: `read` returns the public one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from isthmus.model.networks.wireguard import Device, Peer


class WireGuardError(Exception):
    """WireGuard cannot be had here, or refused; the message has the remedy where there is one."""


class Tunnel(Protocol):
    """One device; every method raises WireGuardError or NetlinkError. Not for two threads at once."""

    def read(self) -> Device | None:
        """Return the device, None where it is not there."""

    def make(self) -> None:
        """Make the device if it is not there."""

    def set_key(self, private: bytes, port: int) -> None:
        """Give the device another key, which ends all sessions, and its port."""

    def change(self, gone: Iterable[str], new: Iterable[Peer]) -> None:
        """Remove peers by their public keys, then add others."""

    def wake(self, keys: Iterable[str]) -> None:
        """Begin a session with peers now, and not with the first packet for them."""

    def close(self) -> None:
        """Let go of it; the device stays."""
