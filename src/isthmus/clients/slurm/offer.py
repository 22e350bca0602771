"""Slurm's nodes and partitions (one sinfo), QOS and limits (one sacctmgr) for this user."""

from __future__ import annotations

import getpass
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from isthmus.clients.process import ProcessError, run
from isthmus.clients.slurm.commands import SlurmError, options_among
from isthmus.model.slurm.cluster import Limit, NodeRoom, Partition, SlurmCluster, SlurmNode

TIMEOUT_S = 30.0
# sinfo(1): a line for each node of each partition this user may see.
_SINFO = ("%N", "%P", "%a", "%c", "%m", "%G", "%f", "%T")
# A line for each node of each partition: allocated/idle/other/total CPUs, memory given to jobs, and in all.
_ROOM = ("NodeList", "Partition", "CPUsState", "AllocMem", "Memory")
_GRES = re.compile(r"(?P<name>[^:,(]+(?::[^:,(]+)?):(?P<count>[0-9]+)(?:\([^)]*\))?")
_NONE = ("(null)", "N/A", "")


def offer(prefix: Path = Path("/usr")) -> SlurmCluster:
    """Return what there is; without accounting there are no limits to know.

    Args:
        prefix: where Slurm is installed.

    Raises:
        SlurmError: slurmctld did not answer.
    """
    rows = node_rows(prefix)
    names, limits = _associations(prefix)
    return SlurmCluster(tuple(_nodes(rows)), tuple(_partitions(rows)), limits, names)


def node_rows(prefix: Path = Path("/usr")) -> list[list[str]]:
    """Return sinfo's rows: one for each node of each partition that the caller may see.

    Args:
        prefix: where Slurm is installed.

    Raises:
        SlurmError: slurmctld did not answer.
    """
    argv = [str(prefix / "bin/sinfo"), "--noheader", "--Node", f"--format={'|'.join(_SINFO)}"]
    try:
        output = run(argv, timeout_s=TIMEOUT_S, without=options_among(os.environ)).stdout
    except ProcessError as error:
        raise SlurmError(f"slurmctld did not say which nodes there are: {error}") from error
    rows = [line.split("|") for line in output.splitlines() if line.strip()]
    if any(len(row) != len(_SINFO) for row in rows):
        raise SlurmError(f"sinfo's answer is no list of nodes: {output[:200]!r}")
    return rows


def rooms(partition: str = "", prefix: Path = Path("/usr")) -> list[NodeRoom]:
    """Return what each node of a partition has free.

    Args:
        partition: its name; empty for the default one.
        prefix: where Slurm is installed.

    Raises:
        SlurmError: slurmctld did not answer.
    """
    argv = [str(prefix / "bin/sinfo"), "--noheader", "--Node", f"--Format={','.join(f'{name}:256' for name in _ROOM)}"]
    try:
        output = run(argv, timeout_s=TIMEOUT_S, without=options_among(os.environ)).stdout
    except ProcessError as error:
        raise SlurmError(f"slurmctld did not say what is free: {error}") from error
    rows = [line.split() for line in output.splitlines() if line.strip()]
    try:
        return [
            _room(row)
            for row in rows
            if row[1] in (partition, f"{partition}*") or (not partition and row[1][-1] == "*")
        ]
    except (ValueError, IndexError) as error:
        raise SlurmError(f"sinfo's answer is no list of nodes: {output[:200]!r}") from error


def _room(row: Sequence[str]) -> NodeRoom:
    name, _, cpus, taken, memory = row
    _, idle, _, total = map(int, cpus.split("/"))
    return NodeRoom(name, idle, int(memory) - int(taken), total, int(memory))


def renewed(known: SlurmCluster, rows: Iterable[Sequence[str]]) -> SlurmCluster:
    """Return what was known of Slurm with newer rows of sinfo that another asked for.

    Partitions that they may not see stay as they were, and those that the user may not see stay unseen.

    Raises:
        ValueError: a row is none of sinfo's.
    """
    rows, mine = [*rows], {partition.name for partition in known.partitions}
    if any(len(row) != len(_SINFO) for row in rows):
        raise ValueError("a row that is none of sinfo's")
    seen = [row for row in rows if row[1].rstrip("*") in mine]
    nodes = {node.name: node for node in (*known.nodes, *_nodes(seen))}
    partitions = {partition.name: partition for partition in (*known.partitions, *_partitions(seen))}
    return replace(known, nodes=tuple(nodes.values()), partitions=tuple(partitions.values()))


def _nodes(rows: Iterable[Sequence[str]]) -> Iterable[SlurmNode]:
    found: dict[str, SlurmNode] = {}
    for name, _, _, cpus, memory, gres, features, state in rows:
        words = frozenset() if features in _NONE else frozenset(features.split(","))
        found[name] = SlurmNode(name, int(cpus), int(memory.rstrip("+")), _gres(gres), words, state.upper())
    return found.values()


def _partitions(rows: Iterable[Sequence[str]]) -> Iterable[Partition]:
    nodes: dict[str, set[str]] = {}
    states: dict[str, str] = {}
    for name, partition, available, *_ in rows:
        nodes.setdefault(partition.rstrip("*"), set()).add(name)
        states[partition.rstrip("*")] = available.upper()
    return [Partition(name, frozenset(held), states[name]) for name, held in nodes.items()]


def _associations(prefix: Path) -> tuple[frozenset[str], tuple[Limit, ...]]:
    words = ["--noheader", "--parsable2", "show", "associations", f"user={getpass.getuser()}"]
    argv = [str(prefix / "bin/sacctmgr"), *words, "format=QOS,GrpTRES,GrpJobs,MaxJobs"]
    try:
        output = run(argv, timeout_s=TIMEOUT_S, without=options_among(os.environ))
    except ProcessError:
        return frozenset(), ()
    names: set[str] = set()
    limits: list[Limit] = []
    for line in output.stdout.splitlines():
        qos, tres, all_jobs, jobs = line.split("|")
        names |= {name for name in qos.split(",") if name}
        counts = [int(count) for count in (all_jobs, jobs) if count.isdecimal()]
        held = dict(part.split("=", 1) for part in tres.split(",") if "=" in part)
        limits.append(
            Limit(cpus=_count(held.get("cpu")), memory_mib=_mib(held.get("mem")), jobs=min(counts, default=None))
        )
    return frozenset(names), tuple(limits)


def _gres(text: str) -> dict[str, int]:
    return {} if text in _NONE else {match["name"]: int(match["count"]) for match in _GRES.finditer(text)}


def _count(text: str | None) -> int | None:
    return int(text) if text and text.isdecimal() else None


def _mib(text: str | None) -> int | None:
    match = re.fullmatch(r"([0-9]+)([MGT]?)", text or "")
    return int(match[1]) * {"": 1, "M": 1, "G": 1024, "T": 1024**2}[match[2]] if match else None
