"""Parser of a run's output: where and when its ranks ran, its steps, and its program's result as a line of JSON. Pure.

A run is valid only if its program has verified its own result and its ranks ran on the expected number of hosts:
without
a host list Open MPI runs all ranks on one host, and succeeds.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from isthmus.bench.launches import Launch

_RANK = re.compile(r"rank (begins|ends) (\S+) (\d+\.\d+)(?: (\d+))?")
_RANK_LINE = re.compile(rf"{_RANK.pattern}\n?")
_RESULT = re.compile(r'\{"program"')
_DECODER = json.JSONDecoder()
_STEP = re.compile(r"^step (begins|ends) (\d+\.\d+)$", re.MULTILINE)
_SHOWN = 2000


class OutputError(Exception):
    """A run that is not valid; the message says why."""


@dataclass(frozen=True, slots=True)
class Output:
    """The parsed output of a run.

    Attributes:
        first_rank: when the first rank began, seconds since 1970.
        program_s: from then until the last one ended.
        hosts: ranks on each host.
        figures: the program's own result.
        steps_s: how long each step of the job took.
    """

    first_rank: float
    program_s: float
    hosts: Mapping[str, int]
    figures: Mapping[str, Any]
    steps_s: tuple[float, ...]


def read(text: str, launch: Launch) -> Output:
    """Read what all ranks of a run wrote.

    Raises:
        OutputError: the run is not valid.
    """
    begun = [(host, float(when)) for kind, host, when, _ in _RANK.findall(text) if kind == "begins"]
    ended = [(float(when), int(status)) for kind, _, when, status in _RANK.findall(text) if kind == "ends" and status]
    wanted = launch.ranks * launch.steps
    if not len(begun) == len(ended) == wanted:
        raise OutputError(f"of {wanted} ranks {len(begun)} began and {len(ended)} ended: {_end(text)}")
    if failed := [status for _, status in ended if status]:
        raise OutputError(f"{len(failed)} ranks ended with status {max(failed)}: {_end(text)}")
    hosts = Counter(host for host, _ in begun)
    if set(hosts.values()) != {launch.per_node * launch.steps} or len(hosts) != launch.nodes:
        raise OutputError(f"expected {launch.per_node} ranks on each of {launch.nodes} hosts, found {dict(hosts)}")
    first = min(when for _, when in begun)
    last = max(when for when, _ in ended)
    return Output(first, last - first, dict(hosts), _figures(text, launch), _steps(text))


def _figures(text: str, launch: Launch) -> Mapping[str, Any]:
    # Lines of one rank may be written in the middle of another's.
    rest = _RANK_LINE.sub("", text)
    try:
        said = [_DECODER.raw_decode(rest, found.start())[0] for found in _RESULT.finditer(rest)]
    except ValueError as error:
        raise OutputError(f"{launch.program[0]} wrote a result that cannot be read ({error}): {_end(text)}") from error
    if len(said) != launch.steps:
        raise OutputError(f"{launch.program[0]} wrote {len(said)} results, not {launch.steps}: {_end(text)}")
    if wrong := [each for each in said if each.get("verified") is not True]:
        raise OutputError(f"{launch.program[0]} found a wrong result: {wrong[0]}")
    if any(each.get("ranks", launch.ranks) != launch.ranks for each in said):
        raise OutputError(f"{launch.program[0]} ran with {said[0]['ranks']} ranks, not {launch.ranks}")
    return dict(said[-1])


def _steps(text: str) -> tuple[float, ...]:
    times = [float(when) for _, when in _STEP.findall(text)]
    return tuple(round(end - begin, 6) for begin, end in zip(times[::2], times[1::2], strict=False))


def _end(text: str) -> str:
    return text[-_SHOWN:].strip() or "no output"
