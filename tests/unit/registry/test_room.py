"""Whether there is room, and the words where there is none."""

import pytest

from isthmus.registry.room import ENTRY_BYTES, MOST_ENTRIES, Disk, Usage, refusal

GIB = 1 << 30
ROOMY = Disk(100 * GIB, 5 * GIB)


@pytest.mark.parametrize(
    ("usage", "quota", "length"),
    [(Usage(), GIB, 0), (Usage(), GIB, GIB), (Usage(GIB - ENTRY_BYTES, 1), GIB, 0), (Usage(GIB // 2), GIB, GIB // 2)],
)
def test_write_within_the_quota_begins(usage, quota, length):
    assert refusal("alice", usage, quota, ROOMY, length) == ""


@pytest.mark.parametrize(
    ("usage", "quota", "disk", "length", "words"),
    [
        (Usage(), 0, ROOMY, 0, "gives alice no room in the registry (quota 0)"),
        (Usage(), GIB, ROOMY, GIB + 1, "alice has 0.0 MiB of 1.0 GiB in the registry and 1.0 GiB more are coming"),
        (Usage(GIB, 1), GIB, ROOMY, 0, "alice has 1.0 GiB of 1.0 GiB in the registry; see isthmus images list"),
        (Usage(0, GIB // ENTRY_BYTES + 1), GIB, ROOMY, 0, "names in the registry"),
        (Usage(0, MOST_ENTRIES + 1), 1000 * GIB, ROOMY, 0, f"more than {MOST_ENTRIES} names"),
        (Usage(), GIB, Disk(5 * GIB - 1, 5 * GIB), 0, "nearly full"),
        (Usage(), 9 * GIB, Disk(6 * GIB, 5 * GIB), 2 * GIB, "nearly full"),
    ],
)
def test_write_without_room_is_refused_in_words_that_a_header_can_have(usage, quota, disk, length, words):
    said = refusal("alice", usage, quota, disk, length)
    assert words in said
    assert said.isascii() and said.isprintable() and not set('"\\') & set(said)
