"""Shared by all commands of a user's cluster: their context, errors of the CLI, progress."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console

from isthmus.cli.errors import CommandError
from isthmus.controlplane import settings
from isthmus.controlplane.commands.context import Context
from isthmus.controlplane.errors import ControlPlaneError
from isthmus.controlplane.layout import Home
from isthmus.controlplane.network import NetworkError
from isthmus.model.network import Driver
from isthmus.network.api.client import SOCKET, ask
from isthmus.network.api.messages import LeaseTake, Request, Reserve, Unreserve
from isthmus.network.api.protocol import RequestError
from isthmus.support import private


class Daemon:
    """The user's private network, by this host's daemon."""

    def reserve(self, name: str) -> str:
        """Reserve an address."""
        return str(_asked(Reserve(name))["address"])

    def unreserve(self, name: str) -> None:
        """Release it."""
        _asked(Unreserve(name))

    def join(self) -> None:
        """Make this host a member."""
        _asked(LeaseTake())


def here() -> Context:
    """Return the caller's context.

    Raises:
        CommandError: this host has no layer kubernetes.
        PrivateError: the path of ~/.isthmus is taken by something else.
    """
    with explained():
        known = settings.read()
    network = Daemon() if known.driver is Driver.PRIVATE else None
    home = Home(Path.home())
    private.check(home.folder)
    return Context(home, known, network, Path(sys.executable))


@contextmanager
def explained() -> Iterator[None]:
    """Convert errors of the control plane to those of the command."""
    try:
        yield
    except ControlPlaneError as error:
        raise CommandError(str(error)) from error
    except OSError as error:
        raise CommandError(f"{error}; see `isthmus doctor`") from error


@contextmanager
def progress() -> Iterator[Callable[[str], None]]:
    """Return a function that shows progress: one changing line on a terminal, else a line per change."""
    console = Console(stderr=True)
    last = ""

    def line(text: str) -> None:
        nonlocal last
        if text != last:
            console.print(text, highlight=False, soft_wrap=True)
        last = text

    if not console.is_terminal:
        yield line
        return
    with console.status("starting") as status:
        yield status.update


def add_json(command: Any) -> None:
    """Add the option that all commands have."""
    command.add_argument("--json", action="store_true", help="one JSON object, for scripts")


def _asked(request: Request) -> dict[str, Any]:
    try:
        return ask(request)
    except RequestError as error:
        raise NetworkError(str(error)) from error
    except OSError as error:
        raise NetworkError(f"{SOCKET}: {error}; an administrator checks isthmus-networkd on this host") from error
