"""Arithmetic of blocks: which part of the pod range is free, and in which order a user's addresses are tried.

Only blocks are looked at, never the addresses of the range, of which there may be millions.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable, Iterator, Sequence
from ipaddress import IPv4Address, IPv4Network
from itertools import chain

# (first address, first one behind)
_Span = tuple[int, int]


def hosts(block: IPv4Network) -> range:
    """Return the addresses of a block that can be given: its network and broadcast addresses are nobody's."""
    return range(int(block.network_address) + 1, int(block.broadcast_address))


def after(blocks: Sequence[IPv4Network], cursor: IPv4Address | None) -> Iterator[int]:
    """Go once through all addresses of the blocks, beginning after the cursor."""
    spans = [hosts(block) for block in blocks]
    last = 0 if cursor is None else int(cursor)
    at = next((index for index, span in enumerate(spans) if last in span), None)
    if at is None:
        return chain(*spans)
    here = spans[at]
    return chain(range(last + 1, here.stop), *spans[at + 1 :], *spans[:at], range(here.start, last + 1))


def grow(
    pods: IPv4Network, block_prefix: int, taken: Iterable[IPv4Network], missing: int, owned: int
) -> list[IPv4Network] | None:
    """Find free blocks that hold at least `missing` addresses together.

    Args:
        pods: the range they are cut from.
        block_prefix: prefix length of the smallest block.
        taken: all blocks of all users.
        missing: how many addresses are wanted.
        owned: a block is not smaller than this, if there is room: doubling what a user has keeps their blocks few.

    Returns:
        One block, or several smaller ones where the range has no large gap; None when it is used up.
    """
    spans = sorted(map(_span, taken))
    new: list[IPv4Network] = []
    while missing > 0:
        block = _free(pods, block_prefix, spans, max(missing + 2, owned))
        if block is None:
            return None
        new.append(block)
        insort(spans, _span(block))
        missing -= len(hosts(block))
    return new


def _free(pods: IPv4Network, block_prefix: int, taken: Sequence[_Span], size: int) -> IPv4Network | None:
    """Return a free block of that size, rounded up to a power of two, or the largest smaller one."""
    wanted = 32 - (size - 1).bit_length()
    for prefix in range(max(pods.prefixlen, min(wanted, block_prefix)), block_prefix + 1):
        start = _gap(_span(pods), taken, 2 ** (32 - prefix))
        if start is not None:
            return IPv4Network((start, prefix))
    return None


def _gap(within: _Span, taken: Sequence[_Span], size: int) -> int | None:
    """Return the lowest multiple of `size` from which that many addresses are free; `taken` is sorted."""
    position, limit = within
    for start, end in chain(taken, [(limit, limit)]):
        aligned = -(-position // size) * size
        if aligned + size <= min(start, limit):
            return aligned
        position = max(position, end)
    return None


def _span(block: IPv4Network) -> _Span:
    first = int(block.network_address)
    return first, first + block.num_addresses
