"""The options of `isthmus bench` for a plain Kubernetes to compare with, and what they name."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from isthmus.bench.kubernetes import Kubernetes
from isthmus.bench.plain import job
from isthmus.bench.plain.cluster import look
from isthmus.bench.plain.turns import Commands, Turns
from isthmus.bench.plan import Plain
from isthmus.bench.scripts import Site
from isthmus.cli.errors import CommandError
from isthmus.clients.kube import kubeconfig
from isthmus.clients.kube.apiserver import ApiServer
from isthmus.clients.kube.kubeconfig import KubeconfigError

_ANSWER_S = 30
_REMEDY = "see `kubectl get events -A` of the plain Kubernetes"
_WRONG_USAGE = 2


@dataclass(frozen=True, slots=True)
class Beside:
    """A plain Kubernetes that was asked for.

    Attributes:
        api: its API server.
        image: reference there of the image; empty for the same as here.
        turns: of it and this cluster.
    """

    api: ApiServer
    image: str
    turns: Turns

    def look(self) -> Plain:
        """Start it, and return what it has.

        Raises:
            TurnError: it cannot be started.
        """
        self.turns.change(plain=True)
        return replace(look(self.api), alone=bool(self.turns.commands.stop))

    def kubernetes(self, site: Site, found: Plain) -> Kubernetes:
        """Return what runs launches there."""
        there = replace(site, image=self.image or site.image, node_cpus=found.cpus)
        return Kubernetes(self.api, there, mpijob=job.mpijob, remedy=_REMEDY)


def add_options(verb: Any) -> None:
    """Add the options."""
    group = verb.add_argument_group(
        "comparison with a plain Kubernetes",
        "Tables 3 to 6 get one more column, which takes turns with the others. Commands start and stop the plain "
        "Kubernetes, and return when that is done; each may be given twice in a row. `plan` uses them too, to look at "
        "it. Without them it is up all the time.",
    )
    group.add_argument("--plain-kubernetes", type=Path, metavar="KUBECONFIG", help="of an administrator there")
    group.add_argument("--plain-image", default="", metavar="IMAGE", help="reference of the image there; that of here")
    group.add_argument("--plain-start", type=_command, default=[], metavar="COMMAND", help="starts it")
    group.add_argument("--plain-stop", type=_command, default=[], metavar="COMMAND", help="stops it")


@contextmanager
def beside(options: argparse.Namespace, progress: Callable[[str], None]) -> Iterator[Beside | None]:
    """Return a plain Kubernetes, which is stopped first and in the end; None where none is asked for.

    Raises:
        CommandError: options that do not fit, or a kubeconfig that cannot be used.
        TurnError: a command failed.
    """
    commands = Commands(options.plain_start, options.plain_stop)
    if not options.plain_kubernetes:
        if commands.start or commands.stop or options.plain_image:
            raise CommandError("--plain-... are for a plain Kubernetes; add --plain-kubernetes", _WRONG_USAGE)
        yield None
        return
    if bool(commands.start) != bool(commands.stop):
        raise CommandError("--plain-start and --plain-stop go together; add the other one", _WRONG_USAGE)
    api = _api(options.plain_kubernetes)
    turns = Turns(commands, progress)
    try:
        turns.change(plain=False)
        yield Beside(api, options.plain_image, turns)
    finally:
        turns.end()


def _api(path: Path) -> ApiServer:
    try:
        access = kubeconfig.read(path)
        access.tls()
    except KubeconfigError as error:
        raise CommandError(
            f"{path} cannot be used: {error.why}; --plain-kubernetes takes a kubeconfig with a client certificate"
        ) from error
    return ApiServer(access, _ANSWER_S)


def _command(text: str) -> list[str]:
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is no command: {error}") from error
    if not words:
        raise argparse.ArgumentTypeError("no command is given")
    return words
