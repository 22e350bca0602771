"""Arithmetic of blocks."""

import random
from ipaddress import IPv4Address, IPv4Network

import pytest

from isthmus.network.state.blocks import after, grow, hosts

PODS = IPv4Network("10.64.0.0/20")


def networks(*texts):
    return [IPv4Network(text) for text in texts]


@pytest.mark.parametrize(
    ("taken", "missing", "owned", "found"),
    [
        ([], 0, 0, []),
        ([], 1, 0, ["10.64.0.0/24"]),
        ([], 254, 0, ["10.64.0.0/24"]),
        ([], 255, 0, ["10.64.0.0/23"]),
        ([], 4000, 0, ["10.64.0.0/20"]),
        (["10.64.0.0/24"], 1, 0, ["10.64.1.0/24"]),
        (["10.64.0.0/24"], 300, 0, ["10.64.2.0/23"]),
        (["10.64.1.0/24"], 1, 0, ["10.64.0.0/24"]),
        (["10.64.0.0/24"], 1, 256, ["10.64.1.0/24"]),
        (["10.64.0.0/24", "10.64.1.0/24"], 1, 512, ["10.64.2.0/23"]),
        (["10.64.0.128/25", "10.64.0.0/25"], 1, 0, ["10.64.1.0/24"]),
        (["10.0.0.0/8"], 1, 0, None),
        (["10.63.0.0/16", "10.65.0.0/16"], 1, 0, ["10.64.0.0/24"]),
        (["10.64.0.0/21"], 4000, 0, None),
        (["10.64.8.0/24"], 3000, 0, ["10.64.0.0/21", "10.64.12.0/22"]),
        (["10.64.0.0/21", "10.64.8.0/22", "10.64.12.0/23", "10.64.15.0/24"], 1, 4096, ["10.64.14.0/24"]),
    ],
)
def test_blocks_fit_what_is_missing(taken, missing, owned, found):
    expected = None if found is None else networks(*found)
    assert grow(PODS, 24, networks(*taken), missing, owned) == expected


def test_smallest_block_is_as_set():
    assert grow(PODS, 28, [], 1, 0) == networks("10.64.0.0/28")
    assert grow(PODS, 28, [], 15, 0) == networks("10.64.0.0/27")
    assert grow(PODS, 20, [], 1, 0) == [PODS]


def test_random_blocks_never_overlap_and_fill_the_range():
    chance = random.Random(5)  # noqa: S311 -- the same each time
    for _ in range(20):
        taken = []
        while new := grow(PODS, 26, taken, chance.randint(1, 200), 0):
            taken += new
        while new := grow(PODS, 26, taken, 1, 0):
            taken += new
        assert sum(block.num_addresses for block in taken) == PODS.num_addresses
        assert not [(a, b) for a in taken for b in taken if a is not b and a.overlaps(b)]


def test_first_and_last_address_of_a_block_are_nobodys():
    assert [str(IPv4Address(each)) for each in hosts(IPv4Network("10.64.0.0/30"))] == ["10.64.0.1", "10.64.0.2"]


@pytest.mark.parametrize(
    ("cursor", "order"),
    [
        (None, "1 2 9 10 5 6"),
        ("10.64.0.1", "2 9 10 5 6 1"),
        ("10.64.0.2", "9 10 5 6 1 2"),
        ("10.64.0.9", "10 5 6 1 2 9"),
        ("10.64.0.6", "1 2 9 10 5 6"),
        ("10.64.0.3", "1 2 9 10 5 6"),
        ("192.0.2.1", "1 2 9 10 5 6"),
    ],
)
def test_search_goes_on_after_the_cursor_through_every_block_once(cursor, order):
    blocks = networks("10.64.0.0/30", "10.64.0.8/30", "10.64.0.4/30")
    start = int(PODS.network_address)
    tried = after(blocks, None if cursor is None else IPv4Address(cursor))
    assert [each - start for each in tried] == [int(word) for word in order.split()]
