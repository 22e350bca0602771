"""Versions of the protocol that a side speaks, and their negotiation.

An upgrade meets pods that run, and jobs that wait with nodes of both releases before them: a kubelet works with the
supervisors of the release before, and a supervisor with the kubelet of the release before. So a version is spoken for
one release longer than it is the newest. The supervisor's hello names all that it speaks; the kubelet takes the newest
that both do, and writes its plans in that (`schema`). `version` in the hello is the oldest: a kubelet that knows no
lists compares it with its own.

A version changes only where an old one would be misunderstood. What is merely added is a word of `features`, a field
with a default (`plan`), or a kind of message: who does not know it ignores it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

# From the oldest to the newest.
SPOKEN = (1,)


class VersionError(Exception):
    """Two sides have no version in common."""


def said(spoken: Sequence[int] = SPOKEN) -> dict[str, Any]:
    """Return what a supervisor's hello says of its versions."""
    return {"version": spoken[0], "versions": [*spoken]}


def agreed(hello: Mapping[str, Any], spoken: Sequence[int] = SPOKEN) -> int:
    """Return the newest version that a supervisor and this kubelet speak.

    Args:
        hello: the supervisor's; one of the first release names no list.
        spoken: the kubelet's.

    Raises:
        VersionError: there is none, or the hello says none.
    """
    theirs = hello.get("versions", [hello.get("version")])
    if not isinstance(theirs, list) or not all(type(one) is int for one in theirs):
        raise VersionError("a hello without a version")
    if common := set(theirs) & set(spoken):
        return int(max(common))
    ours, others = (", ".join(map(str, sorted(some))) for some in (spoken, theirs))
    raise VersionError(f"it speaks version {others}, this kubelet {ours}; give its node and the kubelet one release")
