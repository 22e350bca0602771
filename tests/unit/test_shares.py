import pytest

from tests.shares import Share, beside, over, table, written

LIMITS = {"total": 100, "lint": 30, "testbed": 60, "system": 40}
LINT, TESTBED, SYSTEM = Share("lint", 0, 25), Share("testbed", 0, 61, busy_percent=80), Share("system", 61, 99)


def test_stages_are_beside_each_other_while_both_run():
    assert beside(LINT, [LINT, TESTBED, SYSTEM]) == ["testbed"]
    assert beside(SYSTEM, [LINT, TESTBED, SYSTEM]) == []


def test_run_within_its_budget_names_no_stage():
    assert over([LINT, TESTBED, SYSTEM], LIMITS) == ["    together             99 s of 100"]


@pytest.mark.parametrize(
    ("stages", "said"),
    [
        ([LINT, TESTBED, Share("system", 61, 102)], "testbed took 61 s of its 60, system took 41 s of its 40."),
        ([LINT, Share("system", 80, 110)], "no stage alone is."),
        ([Share("unknown", 0, 300)], "no stage alone is."),
    ],
)
def test_run_over_its_budget_says_which_stages_grew(stages, said):
    assert over(stages, LIMITS)[-1].endswith(f"(tests/budget.toml): {said}")


def test_table_has_a_row_per_stage():
    assert table([LINT, TESTBED], LIMITS).splitlines()[2:] == [
        "| `lint` | 25 | 30 | 0 % | testbed |",
        "| `testbed` | 61 | 60 | 80 % | lint |",
        "| together | 61 | 100 | | |",
    ]


def test_table_is_written_between_its_marks():
    page = "a\n<!-- shares -->\nold\n<!-- end of shares -->\nb\n"
    assert written(page, "new\n") == "a\n<!-- shares -->\nnew\n<!-- end of shares -->\nb\n"


def test_page_without_marks_is_refused():
    with pytest.raises(SystemExit, match="no place for the table"):
        written("a\n", "new\n")
