"""What is run, in which order, and what not and why."""

from collections import Counter
from dataclasses import replace
from itertools import groupby, pairwise

import pytest

from isthmus.bench import plan
from isthmus.bench.launches import Column
from isthmus.bench.plan import Cluster, Plain
from isthmus.bench.sizes import SIZES, Table

FOUR = Cluster(nodes=4, cpus=96, memory_mib=24576)
BESIDE = replace(FOUR, plain=Plain(nodes=4, cpus=2, memory_mib=24000))
SMOKE, MACHINE = SIZES["smoke"], SIZES["machine"]


def cells(made):
    return {run.launch.key for run in made.runs}


def made(cluster=FOUR, tables=tuple(Table), size=SMOKE, rounds=0):
    return plan.make(tables, size, cluster, rounds)


def test_four_nodes_run_all_of_it():
    found = made()
    assert found.left_out == {}
    counted = Counter(key.partition("/")[0] for key in cells(found))
    assert counted == {
        "table3": 15, "table4": 10, "table5": 18, "table6": 18, "figure2": 6, "figure3": 6, "ep": 8,
    }  # fmt: skip


def test_each_round_has_each_cell_once():
    found = made(size=MACHINE, tables=[Table.TABLE3], rounds=3)
    for number in (1, 2, 3):
        assert Counter(run.launch.key for run in found.runs if run.round == number) == dict.fromkeys(cells(found), 1)


def test_columns_of_a_row_follow_one_another():
    rows = [(run.launch.table, run.launch.row) for run in made().runs if run.round]
    assert sum(one != other for one, other in pairwise(rows)) == len(set(rows)) - 1


@pytest.mark.parametrize(("size", "least"), [("paper", 10), ("machine", 6)])
def test_rounds_are_enough_for_an_interval(size, least):
    """Figure 2 has many steps in a run; tables 5 and 6 are judged by the pairs of all their rows."""
    rows = {Table.TABLE5: 9, Table.TABLE6: 9} if size == "machine" else {}
    rounds = {table: count * rows.get(table, 1) for table, count in SIZES[size].rounds.items()}
    assert set(rounds) == set(Table)
    assert all(count >= least or table is Table.FIGURE2 for table, count in rounds.items())


def test_scaling_is_strong_in_table_5_and_weak_in_table_6():
    """A is one worker, B is four."""
    programs = {run.launch.key: (run.launch.program[1:3], run.launch.nodes, run.launch.per_node) for run in made().runs}
    for setup, shape in {"A": (1, 16), "B": (4, 4)}.items():
        assert programs[f"table5/16 {setup}/slurm"] == (("--global", SMOKE.strong), *shape)
        assert programs[f"table6/16 {setup}/slurm"] == (("--local", SMOKE.weak), *shape)


def test_rounds_have_other_orders_and_a_plan_is_always_the_same():
    found = made(size=MACHINE, tables=[Table.TABLE5], rounds=4)
    orders = {tuple(run.launch.key for run in found.runs if run.round == number) for number in range(1, 5)}
    assert len(orders) == 4
    assert found == made(size=MACHINE, tables=[Table.TABLE5], rounds=4)


def test_more_rounds_begin_with_those_of_fewer():
    few, many = (made(size=MACHINE, tables=[Table.TABLE3], rounds=rounds).runs for rounds in (2, 5))
    assert many[: len(few)] == few


def test_warm_up_has_each_program_in_each_column_once():
    kinds = Counter((run.launch.program[0], run.launch.column) for run in made().runs if not run.round)
    assert set(kinds.values()) == {1}
    assert kinds[("fe", Column.MPIJOB)] == 1


@pytest.mark.parametrize(
    ("cluster", "cell", "reason"),
    [
        (replace(FOUR, nodes=2), "table3/1/4/slurm", "needs 4 nodes, and 2 take jobs"),
        (replace(FOUR, cpus=8), "table5/16 A/slurm", "needs 16 CPUs on a node, and the smallest has 8"),
        (replace(FOUR, memory_mib=600), "table3/1/1/slurm", "needs 1200 MiB on a node, and the smallest has 600"),
        (replace(FOUR, kubernetes="it is down"), "ep/2/pod", "it is down"),
        (replace(FOUR, mpijobs="not added"), "table3/1/1/mpijob", "not added"),
        (replace(FOUR, network="no network"), "figure3/HPL-like/container-network", "no network"),
    ],
)
def test_what_cannot_be_run_is_left_out_with_its_reason(cluster, cell, reason):
    found = made(cluster)
    assert found.left_out[cell] == reason
    assert cell not in cells(found)


def test_what_two_nodes_can_run_is_run():
    found = made(replace(FOUR, nodes=2))
    assert {"table3/1/2/mpijob", "table4/inter/pod", "table5/16 A/mpijob", "figure2/2 nodes/container"} <= cells(found)
    assert all(key.endswith(("B/slurm", "B/mpijob")) or "4" in key for key in found.left_out)


def test_no_two_workers_fit_on_one_node():
    for launch in (run.launch for run in made().runs if run.launch.column is Column.MPIJOB and run.launch.nodes > 1):
        assert 2 * plan.worker_cpus(launch, FOUR.cpus) > FOUR.cpus


def test_boxes_fit_all_widths():
    """Points of table 5 are divided among 1, 4, 8, 12 and 16 ranks, in multiples of eight."""
    for size in SIZES.values():
        for ranks in (1, 4, 8, 12, 16):
            assert shapes(tuple(map(int, size.strong.split(","))), ranks), (size.strong, ranks)


def shapes(points, ranks):
    divided = [
        (x, y, ranks // (x * y)) for x in range(1, ranks + 1) for y in range(1, ranks // x + 1) if ranks % (x * y) == 0
    ]
    return [
        each
        for each in divided
        if all(all_of % count == 0 and all_of // count % 8 == 0 for all_of, count in zip(points, each, strict=True))
    ]


def others(made):
    return [run for run in made.runs if run.launch.column is not Column.PLAIN]


def test_plain_kubernetes_is_a_column_on_request_and_changes_no_other():
    found, without = made(BESIDE, rounds=3, size=MACHINE), made(rounds=3, size=MACHINE)
    counted = Counter(key.partition("/")[0] for key in cells(found) if key.endswith("/plain-kubernetes"))
    assert counted == {"table3": 3, "table4": 2, "table5": 9, "table6": 9}
    assert [run.key for run in others(found)] == [run.key for run in without.runs]


def test_plain_kubernetes_takes_turns_some_rows_at_a_time():
    found = [run for run in made(BESIDE, rounds=4, size=MACHINE).runs if run.round]
    turns = [list(group) for _, group in groupby(found, key=lambda run: run.launch.column is Column.PLAIN)]
    rows = [{(run.round, run.launch.table, run.launch.row) for run in turn} for turn in turns]
    # Two rounds of four turns each; every second change is saved, as the next turn begins with who is up.
    assert len(turns) <= 4 * 4 + 1
    for place, turn in enumerate(turns):
        if turn[0].launch.column is Column.PLAIN:
            beside = set().union(*rows[max(place - 1, 0) : place + 2 : 2])
            assert rows[place] <= beside


def test_warm_up_starts_a_plain_kubernetes_once():
    columns = [run.launch.column for run in made(BESIDE).runs if not run.round]
    assert columns[-3:] == [Column.PLAIN] * 3
    assert columns.count(Column.PLAIN) == 3


@pytest.mark.parametrize(
    ("plain", "nodes", "cell", "reason"),
    [
        (Plain(problem="it is down"), 4, "table5/1", "it is down"),
        (Plain(nodes=3, cpus=2, memory_mib=24000), 4, "table3/1/4", "needs 4 nodes, and 3 of the plain Kubernetes"),
        (Plain(nodes=4, cpus=2, memory_mib=1600), 4, "table3/1/1", "needs 1712 MiB on a node, and the smallest"),
        (Plain(nodes=4, cpus=2, memory_mib=24000), 2, "table3/1/4", "needs 4 nodes, and 2 take jobs"),
    ],
)
def test_plain_kubernetes_that_cannot_run_a_cell_leaves_it_out(plain, nodes, cell, reason):
    found = made(replace(FOUR, nodes=nodes, plain=plain))
    assert found.left_out[f"{cell}/plain-kubernetes"].startswith(reason)
    assert f"{cell}/plain-kubernetes" not in cells(found)
    assert nodes < 4 or f"{cell}/slurm" in cells(found)


def test_workers_of_a_plain_kubernetes_fit_nodes_with_fewer_cpus_than_ranks():
    (launch,) = [run.launch for run in made(BESIDE).runs if run.key == "1/table5/16 A/plain-kubernetes"]
    assert [plan.plain_worker_cpus(launch, cpus) for cpus in (1, 2, 16, 17, 96)] == [1, 1, 15, 16, 16]
