"""Admission of a write: a pure function of the user's usage, quota, the free disk space and the request.

What was begun is not cut off: so of the requests that are under way at once, each may bring what there was room for
when it began. nginx bounds their number and the size of each.
"""

from __future__ import annotations

from dataclasses import dataclass

_GIB = 1 << 30


@dataclass(frozen=True, slots=True)
class Usage:
    """What a user has in the registry.

    Attributes:
        size_bytes: of their blobs, each once, and of their uploads under way.
        entries: names on the disk: repositories, tags, links, uploads.
    """

    size_bytes: int = 0
    entries: int = 0

    @property
    def counted_bytes(self) -> int:
        """What counts against the quota."""
        return self.size_bytes + self.entries * ENTRY_BYTES


# A name is a few folders and a file: what these take on the disk.
ENTRY_BYTES = 16 << 10
# Of a user: counting them must be quick.
MOST_ENTRIES = 50_000


@dataclass(frozen=True, slots=True)
class Disk:
    """The registry's disk.

    Attributes:
        free_bytes: that are left.
        reserve_bytes: that users leave to the controller.
    """

    free_bytes: int
    reserve_bytes: int


def refusal(user: str, usage: Usage, quota_bytes: int, disk: Disk, length_bytes: int) -> str:
    """Return why a write may not begin, "" where it may; printable ASCII without quotes, for a header and for JSON.

    Args:
        user: who writes.
        usage: what they have.
        quota_bytes: what they may have.
        disk: the registry's.
        length_bytes: of the request's body, 0 where the client does not say.
    """
    if quota_bytes <= 0:
        return f"the site gives {user} no room in the registry (quota 0); its admins can"
    if usage.entries > MOST_ENTRIES:
        return f"{user} has more than {MOST_ENTRIES} names in the registry: tags, layers, uploads; delete images"
    if usage.counted_bytes + length_bytes > quota_bytes:
        more = f" and {_size(length_bytes)} more are coming" if length_bytes else ""
        return (
            f"{user} has {_size(usage.counted_bytes)} of {_size(quota_bytes)} in the registry{more}; see isthmus images"
            " list --registry and delete images, whose room is free after the next cleaning"
        )
    if disk.free_bytes - length_bytes < disk.reserve_bytes:
        return "the disk of the registry is nearly full; ask the site for room"
    return ""


def _size(count: int) -> str:
    return f"{count / _GIB:.1f} GiB" if count >= _GIB else f"{count / (1 << 20):.1f} MiB"
