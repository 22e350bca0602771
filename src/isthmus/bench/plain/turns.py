"""This cluster and a plain Kubernetes take turns: on one machine an idle one takes some percent of its CPUs.

Two commands of the user start and stop the plain one; they may do the opposite with the user's Kubernetes. At first
nothing is known, as an earlier session may have been killed, so the first turn has its command, too. After each command
an MPIJob that does nothing proves that what was started works, and takes what only a first one takes.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from isthmus.bench.kubernetes import Kubernetes
from isthmus.bench.launches import Column, Launch
from isthmus.bench.output import OutputError
from isthmus.bench.running import Platform
from isthmus.clients.kube.errors import KubeError
from isthmus.clients.process import ProcessError, run

# Nodes may have to boot.
LIMIT_S = 900.0
_PROBE = "probe"


class TurnError(Exception):
    """What must be up or down may not be so; nothing is measured. The message has the remedy."""


@dataclass(frozen=True, slots=True)
class Commands:
    """What starts and stops a plain Kubernetes; nothing where it is up all the time."""

    start: Sequence[str] = ()
    stop: Sequence[str] = ()


@dataclass(slots=True)
class Turns:
    """Whose turn it is.

    Attributes:
        commands: of the plain Kubernetes.
        progress: takes a line about each command.
    """

    commands: Commands
    progress: Callable[[str], None]
    _is_plain: bool | None = None
    _used: set[bool] = field(default_factory=set)

    def to(self, *, plain: bool) -> bool:
        """Give the turn to the plain Kubernetes, or to this cluster; return whether it must be proved to work.

        Raises:
            TurnError: a command failed.
        """
        must_be_proved = plain not in self._used or (bool(self.commands.start) and plain is not self._is_plain)
        self.change(plain=plain)
        self._used.add(plain)
        return must_be_proved

    def change(self, *, plain: bool) -> None:
        """Run the command, unless the turn is there already.

        Raises:
            TurnError: it failed.
        """
        if plain is self._is_plain:
            return
        # Until the command has ended well nothing is known.
        self._is_plain = None
        if words := self.commands.start if plain else self.commands.stop:
            self.progress(f"{'starting' if plain else 'stopping'} the plain Kubernetes: {shlex.join(words)}")
            try:
                run(words, timeout_s=LIMIT_S)
            except ProcessError as error:
                raise TurnError(f"{error}\nnothing is measured beside what may be up; mend it, and go on") from error
        self._is_plain = plain

    def end(self) -> None:
        """Stop the plain Kubernetes.

        Raises:
            TurnError: the command failed.
        """
        self.change(plain=False)


@dataclass(frozen=True, slots=True)
class Sides:
    """Which platform runs a column, after the turn it needs.

    Attributes:
        turns: of both sides.
        slurm: runs jobs.
        ours: the user's Kubernetes; None where it is not used.
        plain: the plain one.
        probe: a launch for the proof, of the column that it has in the user's Kubernetes.
    """

    turns: Turns
    slurm: Platform
    ours: Kubernetes | None
    plain: Kubernetes
    probe: Launch

    def platform(self, column: Column) -> Platform:
        """Return what runs a column.

        Raises:
            TurnError: what must be up does not work.
        """
        is_plain = column is Column.PLAIN
        kubernetes = self.plain if is_plain else self.ours
        if self.turns.to(plain=is_plain) and kubernetes:
            self._prove(kubernetes, is_plain=is_plain)
        return kubernetes if kubernetes and (is_plain or column.is_kubernetes) else self.slurm

    def _prove(self, kubernetes: Kubernetes, *, is_plain: bool) -> None:
        whose = "the plain" if is_plain else "your"
        try:
            kubernetes.prepare()
            kubernetes.run(replace(self.probe, column=Column.PLAIN) if is_plain else self.probe, _PROBE)
        except (KubeError, OutputError) as error:
            raise TurnError(f"{whose} Kubernetes does not run what it should: {error}") from error
