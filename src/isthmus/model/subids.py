"""Ranges of subordinate ids, as subuid(5) and subgid(5) have them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

# The first id that may not be used: (uid_t)-1 means no user at all.
END_ID = 2**32 - 1


@dataclass(frozen=True, slots=True, order=True)
class Range:
    """Ids that a user may use in user namespaces.

    Attributes:
        name: login name, or a number as subuid(5) allows.
        start: the first id.
        count: how many.
    """

    name: str
    start: int
    count: int

    @property
    def end(self) -> int:
        """The first id after it."""
        return self.start + self.count

    @property
    def text(self) -> str:
        """Words for a message."""
        return f"the range of {self.name} ({self.start} to {self.end - 1})"

    def __str__(self) -> str:
        """Write the line of the file."""
        return f"{self.name}:{self.start}:{self.count}"


def parse(text: str) -> list[Range]:
    """Read the lines that have three fields and numbers; the system's programs pass over others too."""
    fields = [line.strip().split(":") for line in text.splitlines()]
    return [Range(each[0], int(each[1]), int(each[2])) for each in fields if _is_range(each)]


def given(text: str, name: str, number: int) -> bool:
    """Return whether a user has any: by name, or by number."""
    return any(each.name in (name, str(number)) and each.count > 0 for each in parse(text))


def overlaps(ranges: Iterable[Range]) -> list[tuple[Range, Range]]:
    """Return the pairs of ranges of two users that share an id; the earlier in `ranges` comes first in a pair."""
    given = list(ranges)
    found: list[tuple[Range, Range]] = []
    reaching: list[Range] = []
    for each in sorted(given, key=lambda one: one.start):
        reaching = [one for one in reaching if one.end > each.start]
        found += [(one, each) for one in reaching if one.name != each.name]
        reaching.append(each)
    return [(one, other) if given.index(one) < given.index(other) else (other, one) for one, other in found]


def _is_range(fields: list[str]) -> bool:
    return len(fields) == 3 and all(field.isdecimal() for field in fields[1:])
