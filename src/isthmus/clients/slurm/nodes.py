"""Nodes as slurmctld knows them, asked and changed by scontrol."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from isthmus.clients.process import ProcessError, run
from isthmus.clients.slurm.commands import SlurmError, options_among

_TIMEOUT_S = 30


@dataclass(frozen=True, slots=True)
class NodeState:
    """A node.

    Attributes:
        flags: of its state, IDLE, CLOUD, POWERED_DOWN and their like.
        reason: why it is out of service, without who said so; "" for none.
    """

    flags: frozenset[str]
    reason: str


def host_names(folded: str) -> list[str]:
    """Expand `c[1-3]`, as slurmctld writes it.

    Raises:
        SlurmError: it is no list of nodes.
    """
    return _scontrol("show", "hostnames", folded).split()


def node_states(names: Iterable[str]) -> dict[str, NodeState]:
    """Ask for nodes.

    Raises:
        SlurmError: slurmctld does not answer, or has no such node.
    """
    return read_nodes(_scontrol("show", "node", ",".join(names)))


def read_nodes(shown: str) -> dict[str, NodeState]:
    """Read what `scontrol show node` prints: a paragraph for each node."""
    found = {}
    for paragraph in shown.split("\n\n"):
        lines = [line.strip() for line in paragraph.splitlines()]
        first = {line.partition("=")[0]: line.partition("=")[2] for line in lines if "=" in line}
        if "NodeName" in first:
            flags = frozenset(first.get("State", "").partition(" ")[0].split("+"))
            name = first["NodeName"].partition(" ")[0]
            found[name] = NodeState(flags, first.get("Reason", "").rpartition(" [")[0])
    return found


def update_nodes(names: Collection[str], **changes: str) -> None:
    """Change nodes, each in the same way.

    Raises:
        SlurmError: slurmctld refused, or does not answer.
    """
    _scontrol("update", f"NodeName={','.join(names)}", *(f"{key}={value}" for key, value in changes.items()))


def _scontrol(*words: str) -> str:
    try:
        return run(["scontrol", *words], timeout_s=_TIMEOUT_S, without=options_among(os.environ)).stdout
    except ProcessError as error:
        raise SlurmError(f"slurmctld was asked in vain: {error}") from error
