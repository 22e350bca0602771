"""What a run wrote, and when it does not count."""

import json

import pytest

from isthmus.bench import output, tables
from isthmus.bench.launches import Column
from isthmus.bench.output import OutputError
from isthmus.bench.sizes import SIZES, Table

RESULT = {"program": "ep", "ranks": 4, "seconds": 1.5, "verified": True}


def launch(table=Table.EP, row="4", column=Column.SLURM):
    found = tables.launches(table, SIZES["smoke"])
    return next(each for each in found if (each.row, each.column) == (row, column))


def ranks(hosts, begin=100.25, status=0):
    begun = [f"rank begins {host} {begin + place}" for place, host in enumerate(hosts)]
    return begun, [f"rank ends {host} {begin + 10 + place} {status}" for place, host in enumerate(hosts)]


def text(hosts=("c1", "c1", "c2", "c2"), result=RESULT, **options):
    begun, ended = ranks(hosts, **options)
    return "\n".join([*begun, "some words", json.dumps(result), *ended]) + "\n"


def test_times_hosts_and_figures_are_read():
    found = output.read(text(), launch())
    assert (found.first_rank, found.program_s) == (100.25, 13)
    assert found.hosts == {"c1": 2, "c2": 2}
    assert found.figures["seconds"] == 1.5


def test_lines_that_came_after_others_without_a_break_are_read():
    broken = text().replace("\nrank ends c2", "rank ends c2")
    assert output.read(broken, launch()).program_s == 13


def test_result_with_a_line_of_another_rank_in_it_is_read():
    whole = text(result=RESULT | {"points": list(range(300))})
    line = "rank ends c2 113.25 0\n"
    cut = whole.replace(line, "").replace("299", f"2{line}99")
    assert output.read(cut, launch()) == output.read(whole, launch())


@pytest.mark.parametrize(
    ("wrote", "reason"),
    [
        (text(hosts=("c1",) * 4), "expected 2 ranks on each of 2 hosts"),
        (text(hosts=("c1", "c1", "c1", "c2")), "expected 2 ranks on each of 2 hosts"),
        (text(hosts=("c1", "c2")), "of 4 ranks 2 began"),
        (text(status=1), "4 ranks ended with status 1"),
        (text(result=RESULT | {"verified": False}), "ep found a wrong result"),
        (text(result=RESULT | {"ranks": 1}), "ep ran with 1 ranks, not 4"),
        (text(result={}), "ep wrote 0 results, not 1"),
        (text().replace("true}", "tr"), "ep wrote a result that cannot be read"),
        ("", "of 4 ranks 0 began and 0 ended: no output"),
    ],
)
def test_what_does_not_count_says_why(wrote, reason):
    with pytest.raises(OutputError, match=reason):
        output.read(wrote, launch())


def test_steps_are_timed_one_by_one():
    step = launch(Table.FIGURE2, "2 nodes")
    begun, ended = ranks(("c1", "c2"))
    result = json.dumps({"program": "init", "ranks": 2, "verified": True})
    lines = []
    for number in range(step.steps):
        lines += [f"step begins {200 + number}.0", *begun, result, *ended, f"step ends {200 + number}.5"]
    assert output.read("\n".join(lines) + "\n", step).steps_s == (0.5,) * step.steps
