"""A session: what is run, kept and reported; a platform that the test plays."""

import json

import pytest

from isthmus.bench import plan, running
from isthmus.bench.output import OutputError
from isthmus.bench.plain.turns import TurnError
from isthmus.bench.results import Document
from isthmus.bench.running import Session
from isthmus.bench.sizes import SIZES, Table
from tests.support.files.bench_results import ABOUT, result

PLAN = plan.make([Table.EP], SIZES["smoke"], plan.Cluster(4, 96, 24576), rounds=2)


class Platform:
    """Starts ranks at once; those of `broken` fail. Time goes on by ten seconds with each run."""

    def __init__(self):
        self.ran, self.broken, self.now_s = [], set(), 0.0

    def run(self, launch, name):
        self.ran.append(name)
        self.now_s += 10
        if launch.row in self.broken:
            raise OutputError("it broke")
        hosts = [f"c{place % launch.nodes}" for place in range(launch.ranks)]
        said = {"program": "ep", "ranks": launch.ranks, "seconds": 1, "mops": 1, "verified": True}
        lines = [f"rank begins {host} 101.0" for host in hosts] + [json.dumps(said)]
        return "\n".join([*lines, *(f"rank ends {host} 103.5 0" for host in hosts)]) + "\n", 100.0, 104.0


@pytest.fixture
def platform():
    return Platform()


@pytest.fixture
def kept():
    return []


@pytest.fixture
def reported():
    return []


@pytest.fixture
def session(platform, kept, reported):
    return Session(lambda column: platform, kept.append, reported.append, clock=lambda: platform.now_s)


def test_each_result_is_kept_at_once(session, platform, kept, reported):
    document = session.go_on(PLAN, Document("smoke", ABOUT), float("inf"))
    assert document.done == {run.key for run in PLAN.runs}
    assert [len(each.results) for each in kept] == list(range(1, len(PLAN.runs) + 1))
    (first, *_) = document.results
    assert (first.end_s, first.start_s, first.program_s) == (4, 1, 2.5)
    assert reported[0].startswith(f"[1/{len(PLAN.runs)}] warm-up: ep 2 slurm: 4.0 s, the program 2.5 s; about ")


def test_limit_ends_a_session_and_the_next_one_goes_on(session, platform):
    document = session.go_on(PLAN, Document("smoke", ABOUT), 25)
    assert len(document.results) == 3
    session.go_on(PLAN, document, float("inf"))
    assert len(platform.ran) == len(set(platform.ran)) == len(PLAN.runs)


def test_failure_is_kept_and_the_others_run(session, platform, reported):
    platform.broken = {"8"}
    document = session.go_on(PLAN, Document("smoke", ABOUT), float("inf"))
    failed = [each for each in document.results if each.error]
    assert {each.row for each in failed} == {"8"}
    assert failed[0].error == "it broke"
    assert any("FAILED: it broke" in line for line in reported)
    platform.broken = set()
    assert session.go_on(PLAN, document, float("inf")).done == {run.key for run in PLAN.runs}


def test_platform_that_cannot_be_brought_up_ends_a_session(platform, kept, reported):
    def turn(column):
        if len(kept) == 2:
            raise TurnError("it is not up")
        return platform

    with pytest.raises(TurnError):
        Session(turn, kept.append, reported.append).go_on(PLAN, Document("smoke", ABOUT), float("inf"))
    assert len(kept[-1].results) == 2


def test_cell_that_always_fails_is_left_for_another_session(session, platform):
    platform.broken = {"8"}
    many = plan.make([Table.EP], SIZES["smoke"], plan.Cluster(4, 96, 24576), rounds=9)
    session.go_on(many, Document("smoke", ABOUT), float("inf"))
    assert sum("-8-" in name for name in platform.ran) == 2 * 2


def test_estimate_is_that_of_the_cell_then_of_the_column():
    runs = PLAN.runs
    guess = running.remaining_s(runs, ())
    assert guess == sum(4.0 if run.launch.column == "pod" else 3.0 for run in runs)
    known = [result(run) for run in runs[:2]]
    assert running.remaining_s(runs[:1], known) == known[0].end_s
    assert running.remaining_s(runs[-1:], known) in [each.end_s for each in known]
