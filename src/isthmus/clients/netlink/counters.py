"""Named counters of nf_tables by one dump; nft(8) reads all sets first, which takes a second for some ten thousand."""

from __future__ import annotations

import struct
from collections import Counter
from contextlib import closing

from isthmus.clients.netlink.wire import Wire, attributes, listing

# linux/netlink.h, linux/netfilter/nfnetlink.h, linux/netfilter/nf_tables.h
_NETFILTER = 12
_GET_OBJECTS = 10 << 8 | 19
_TABLE, _NAME, _TYPE, _DATA = 1, 2, 3, 4
_COUNTER = struct.pack(">I", 1)
_PACKETS = 2
_HEADER = struct.Struct("=BBH")
_NUMBER = struct.Struct(">Q")


def packets(table: str) -> dict[str, int]:
    """Return how many packets each named counter has, those of that name in tables of all families added.

    Raises:
        NetlinkError: the kernel refused.
    """
    with closing(Wire(_NETFILTER)) as wire:
        # Family 0: those of all.
        found = wire.read(listing(_GET_OBJECTS, _HEADER.pack(0, 0, 0), "list counters"), _decoded)
    counts: Counter[str] = Counter()
    for its_table, name, count in found:
        if its_table == table:
            counts[name] += count
    return dict(counts)


def _decoded(body: bytes) -> tuple[str, str, int]:
    """Return an object's table, name and packets; of no table where it is no counter."""
    attrs = attributes(body[_HEADER.size :])
    if attrs.get(_TYPE) != _COUNTER:
        return "", "", 0
    (count,) = _NUMBER.unpack(attributes(attrs[_DATA])[_PACKETS])
    return _text(attrs[_TABLE]), _text(attrs[_NAME]), count


def _text(value: bytes) -> str:
    return value.rstrip(b"\0").decode(errors="replace")
