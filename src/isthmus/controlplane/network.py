"""The interface to the network layer, which is a sibling of this package; the CLI passes in the implementation."""

from __future__ import annotations

from typing import Protocol


class NetworkError(Exception):
    """The node's network daemon refuses or cannot be reached, with the remedy."""


class PodNetwork(Protocol):
    """The caller's private network, as this host's daemon gives it; every method may raise NetworkError."""

    def reserve(self, name: str) -> str:
        """Keep an address for a name; return it, the same each time."""

    def unreserve(self, name: str) -> None:
        """Give it back."""

    def join(self) -> None:
        """Make this host reach the network, for as long as the user is here."""
