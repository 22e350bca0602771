"""Problem sizes: as in the papers, for a small machine, or just enough for a smoke test.

Assumptions about what a paper leaves open are noted beside the value.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Table(StrEnum):
    """What is measured, by its name in the papers; EP is swept as the third paper's workflow does."""

    TABLE3 = "table3"
    TABLE4 = "table4"
    TABLE5 = "table5"
    TABLE6 = "table6"
    FIGURE2 = "figure2"
    FIGURE3 = "figure3"
    EP = "ep"


@dataclass(frozen=True, slots=True)
class Size:
    """One choice of problems.

    Attributes:
        rounds: of each table.
        fe_unknowns: of the elastic solid of table 3.
        message_bytes: the largest message of table 4.
        message_repeats: of each message.
        strong: points of all ranks in table 5.
        weak: points of each rank in table 6.
        hpcg_time: options for its duration: `--sets N` (equal work) or `--seconds S`.
        steps: of one job of figure 2.
        hpl_unknowns: of figure 3.
        hpl_block: block size of figure 3.
        hpcg_figure3: points of each rank of figure 3.
        ep_class: of the sweep.
        memory_mib: of each rank.
        minutes: time limit of a run.
        turn_rows: rows that are measured before a plain Kubernetes and this cluster take turns.
    """

    rounds: Mapping[Table, int]
    fe_unknowns: int
    message_bytes: int
    message_repeats: int
    strong: str
    weak: str
    hpcg_time: tuple[str, str]
    steps: int
    hpl_unknowns: int
    hpl_block: int
    hpcg_figure3: str
    ep_class: str
    memory_mib: int
    minutes: int
    turn_rows: int


_TEN = dict.fromkeys(Table, 10)
# With fewer than six pairs no interval of a median reaches 95 %.
_SIX = dict.fromkeys(Table, 6)
# Tables 5 and 6 are judged by the pairs of all their nine rows.
_NINE_ROWS = {Table.TABLE5: 3, Table.TABLE6: 3}

SIZES: Mapping[str, Size] = {
    # Half an hour a run of table 3, whose solid is not published; table 5's points are those of one rank of table 6.
    "paper": Size(
        rounds={**_TEN, Table.FIGURE2: 1, Table.FIGURE3: 20},
        fe_unknowns=20_000_000,
        message_bytes=8 << 20,
        message_repeats=1000,
        strong="96,128,128",
        weak="96,128,128",
        hpcg_time=("--seconds", "60"),
        steps=50,
        hpl_unknowns=25_000,
        hpl_block=192,
        hpcg_figure3="96,128,128",
        ep_class="A",
        memory_mib=3500,
        minutes=120,
        turn_rows=1,
    ),
    # For eight ranks on two cores: some seconds a run.
    "machine": Size(
        rounds={**_SIX, **_NINE_ROWS, Table.FIGURE2: 1},
        fe_unknowns=40_000,
        message_bytes=1 << 20,
        message_repeats=100,
        strong="48,32,16",
        weak="16,16,8",
        hpcg_time=("--seconds", "1"),
        steps=20,
        hpl_unknowns=4000,
        hpl_block=80,
        hpcg_figure3="32,32,16",
        ep_class="A",
        memory_mib=300,
        minutes=5,
        # Some three minutes: a turn costs half a minute, and what is compared should lie close together.
        turn_rows=8,
    ),
    "smoke": Size(
        rounds=dict.fromkeys(Table, 1),
        fe_unknowns=3_000,
        message_bytes=1 << 10,
        message_repeats=10,
        strong="48,32,16",
        weak="8,8,8",
        hpcg_time=("--sets", "1"),
        steps=3,
        hpl_unknowns=200,
        hpl_block=40,
        hpcg_figure3="8,8,8",
        ep_class="S",
        memory_mib=300,
        minutes=5,
        turn_rows=100,
    ),
}
