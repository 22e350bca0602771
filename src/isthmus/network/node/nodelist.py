"""Lists of nodes as Slurm folds them: `c[1-3,7],login` for c1, c2, c3, c7, login, in this order.

The order matters: a job's n-th address belongs to its n-th node. That is why no library does this: ClusterShell's
NodeSet and python-hostlist sort what they fold. ClusterShell is also only on the deployer, and python-hostlist under
the GPL, which this project's Apache licence does not go along with in one program. Neither bounds what a few bytes
such as `c[1-9][1-9][1-9]...` unfold to, and this text comes from a socket that everybody may write to.

Unfolding takes all that Slurm writes, several brackets in a name included; folding folds the last number of a name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import groupby, product
from math import prod

from isthmus.network.bounds import is_node_name

# More than Slurm manages (slurm.h, MAX_SLURM_NODES: 65,533).
NODES_MAX = 2**16
# Longer numbers in a name are no counters; they stay as they are.
_DIGITS_MAX = 9

_PART = re.compile(r"(?:[A-Za-z0-9._-]|\[[0-9,-]+\])+")
_PIECE = re.compile(r"\[([^\]]+)\]|([^\[]+)")
_RANGE = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9}))?")


class NodeListError(ValueError):
    """A text is no list of nodes; the message has no remedy, which depends on the caller."""


def unfold(text: str) -> tuple[str, ...]:
    """Return the names a folded list stands for, in Slurm's order.

    Raises:
        NodeListError: not such a list, a name twice, or more than NODES_MAX names.
    """
    names: list[str] = []
    position = 0
    while True:
        part = _PART.match(text, position)
        if part is None:
            raise NodeListError(f"no node name at character {position + 1}")
        names += _expand(part.group(), NODES_MAX - len(names))
        position = part.end()
        if position == len(text):
            break
        if text[position] != ",":
            raise NodeListError(f"no comma at character {position + 1}")
        position += 1
    return _checked(names)


def fold(names: Iterable[str]) -> str:
    """Undo `unfold`: neighbours that count up are folded, no name changes its place.

    Raises:
        NodeListError: no name at all, one that cannot be a node's, or one twice.
    """
    checked = _checked(list(names))
    if not checked:
        raise NodeListError("no nodes")
    # `c` and `c1` begin alike, but only one of them counts.
    groups = groupby(map(_split, checked), key=lambda part: (part[0], part[1] != ""))
    return ",".join(_folded(prefix, [digits for _, digits in group]) for (prefix, _), group in groups)


def _checked(names: list[str]) -> tuple[str, ...]:
    wrong = next((name for name in names if not is_node_name(name)), None)
    if wrong is not None:
        raise NodeListError(f"{wrong[:40]!a} cannot be the name of a node")
    if len(set(names)) != len(names):
        raise NodeListError("a node is named twice")
    return tuple(names)


def _expand(part: str, limit: int) -> list[str]:
    pieces = [_choices(brackets) if brackets else (literal,) for brackets, literal in _PIECE.findall(part)]
    # Counted before anything is made of it.
    if prod(map(len, pieces)) > limit:
        raise NodeListError(f"more than {NODES_MAX} nodes")
    return ["".join(words) for words in product(*pieces)]


def _choices(brackets: str) -> list[str]:
    found = [_bounds(text) for text in brackets.split(",")]
    if sum(last - first + 1 for _, first, last in found) > NODES_MAX:
        raise NodeListError(f"more than {NODES_MAX} nodes")
    return [f"{number:0{width}d}" for width, first, last in found for number in range(first, last + 1)]


def _bounds(text: str) -> tuple[int, int, int]:
    """Return the width, first and last number of `7` or `08-11`."""
    match = _RANGE.fullmatch(text)
    if match is None:
        raise NodeListError(f"{text[:40]!a} is no range of numbers")
    first, last = int(match[1]), int(match[2] or match[1])
    if last < first:
        raise NodeListError(f"{text!a} ends before it begins")
    return len(match[1]), first, last


def _split(name: str) -> tuple[str, str]:
    """Return what comes before the last number, and its digits, none where nothing can be folded."""
    prefix = name.rstrip("0123456789")
    digits = name[len(prefix) :]
    return (prefix, digits) if len(digits) <= _DIGITS_MAX else (name, "")


def _folded(prefix: str, numbers: list[str]) -> str:
    if len(numbers) == 1:
        return prefix + numbers[0]
    return f"{prefix}[{','.join(first if first == last else f'{first}-{last}' for first, last in _runs(numbers))}]"


def _runs(numbers: list[str]) -> list[tuple[str, str]]:
    """Join numbers that count up at the width of the first one."""
    runs: list[tuple[str, str]] = []
    for digits in numbers:
        if runs and digits == f"{int(runs[-1][1]) + 1:0{len(runs[-1][0])}d}":
            runs[-1] = (runs[-1][0], digits)
        else:
            runs.append((digits, digits))
    return runs
