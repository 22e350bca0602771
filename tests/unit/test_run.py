import json

import pytest

from tests import run
from tests.bench import results

MAKEFILE = """
good bad slow late:
\t@$(STEPS); echo $@ >>order
good: STEPS = echo it is well; echo 12 passed
bad: STEPS = echo it is not; exit 3
slow: STEPS = until grep -qs good order; do sleep 0.01; done; echo 7 passed
late: STEPS = true
"""


@pytest.fixture
def stages(tmp_path, monkeypatch):
    """Run stages of a Makefile; give the exit status and the stages that came to their end."""
    (tmp_path / "Makefile").write_text(MAKEFILE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(results, "RESULTS", tmp_path)

    def start(*words):
        status = run.main(words)
        return status, (tmp_path / "order").read_text().split() if (tmp_path / "order").exists() else []

    return start


def test_words_and_lanes():
    assert run.lanes("lint") == [["lint"]]
    assert run.lanes("testbed+lint,unit") == [["testbed"], ["lint", "unit"]]


@pytest.mark.parametrize("word", ["", "lint+", "lint,,unit"])
def test_stage_without_a_name_is_refused(word):
    with pytest.raises(SystemExit, match="stage without a name; write"):
        run.lanes(word)


def test_stages_follow_each_other(stages):
    assert stages("good", "late") == (0, ["good", "late"])


def test_lanes_run_at_once_and_print_in_one_piece(stages, capfdbinary):
    assert stages("slow,late+good") == (0, ["good", "slow", "late"])
    _, *printed = capfdbinary.readouterr().out.decode().split("=== make ")
    blocks = {block.split()[0]: block for block in printed}
    assert blocks.keys() == {"slow", "good", "late"}
    assert "12 passed\n--- " in blocks["good"]


def test_no_stage_begins_after_one_that_failed(stages):
    assert stages("bad,late", "late") == (2, [])


def test_no_lane_goes_on_after_a_stage_of_another_failed(stages):
    begun = run.Run()
    begun.failed.set()
    begun.word(["late"], ["good"])
    assert begun.shares == []


def test_times_are_kept(stages, tmp_path):
    stages("slow+good", "late")
    kept = json.loads((tmp_path / "shares.json").read_text())
    assert {stage["stage"]: stage["status"] for stage in kept["stages"]} == {"good": 0, "slow": 0, "late": 0}
    assert kept["seconds"] == max(stage["ended_s"] for stage in kept["stages"])


def test_busy_is_what_is_neither_idle_nor_waiting():
    assert run.busy_percent([10, 0, 10, 100, 0, 0, 0, 0], [40, 0, 20, 140, 20, 0, 0, 0]) == 40
