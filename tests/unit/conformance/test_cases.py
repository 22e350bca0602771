import re

import pytest

from tests.conformance import cases
from tests.conformance.cases import Case, Inapplicable

LISTED = """\
- testname: A
  codename: '[sig-node] Pods should be
    "quick" (env vars) [Conformance]'
  file: test/e2e/common/node/pods.go
- testname: B
  codename: '[sig-apps] Job should adopt [Conformance]'
  file: test/e2e/apps/job.go
"""


def test_list_of_the_suite_is_read():
    first, second = cases.listed(LISTED)
    assert first == Case('[sig-node] Pods should be "quick" (env vars) [Conformance]', "common/node/pods.go")
    assert second.file == "apps/job.go"


@pytest.mark.parametrize("text", ["", "[]", "name: x"])
def test_what_is_no_list_is_refused(text):
    with pytest.raises(ValueError, match="no conformance cases"):
        cases.listed(text)


def test_pattern_is_for_one_case_alone():
    first, _ = cases.listed(LISTED)
    assert re.search(first.pattern, f"Kubernetes e2e suite {first.name}")
    assert not re.search(first.pattern, f"{first.name} [Slow]")
    assert not re.search(first.pattern, first.name.replace("(env", "env"))


def test_focus_chooses():
    assert [case.file for case in cases.chosen(cases.listed(LISTED), "sig-(apps|none)")] == ["apps/job.go"]
    with pytest.raises(ValueError, match="FOCUS is a regular expression"):
        cases.chosen(cases.listed(LISTED), "sig-storage")


def test_reason_is_of_the_first_row_that_fits():
    table = [Inapplicable("Pods", "one"), Inapplicable("quick", "two"), Inapplicable("gone", "three")]
    first, second = cases.listed(LISTED)
    assert (cases.reason_against(first, table), cases.reason_against(second, table)) == ("one", "")
    assert cases.idle([first, second], table) == ["gone"]


def test_table_of_the_tree_has_a_reason_for_each():
    table = cases.inapplicable()
    assert table
    assert all(re.compile(row.cases) and len(row.reason) > 20 for row in table)


@pytest.mark.parametrize(("name", "alone"), [("[sig-node] A [Serial] case", True), ("[sig-node] Serial", False)])
def test_case_says_whether_it_wants_the_cluster_alone(name, alone):
    assert Case(name, "node/pods.go").alone == alone
