import json

from tests.conformance import report, results
from tests.conformance.cases import Case
from tests.conformance.junit import Outcome, Verdict


def row(name, outcome, reason="", file="common/node/pods.go", date="2026-11-21"):
    return results.row(Case(name, file), Verdict(outcome, 1.5, reason), date)


ROWS = [
    row("[sig-node] Pods should be quick [NodeConformance] [Conformance]", Outcome.PASSED),
    row("[sig-node] Pods should be *slow* [Conformance]", Outcome.FAILED, "pod pods-4711 at 10.64.2.3:80 is | gone"),
    row("[sig-node] Pods should be late [Conformance]", Outcome.FAILED, "pod pods-12 at 10.64.2.9 is | gone"),
    row("[sig-apps] Job should end [Conformance]", Outcome.INAPPLICABLE, "no root", "apps/job.go", "2026-11-22"),
]


def test_page_counts_by_group():
    lines = report.page(ROWS, "1.36.3").splitlines()
    assert "| group | passed | failed | not applicable |" in lines
    assert {"| sig-apps | 0 | 0 | 1 |", "| sig-node | 1 | 2 | 0 |", "| all | 1 | 2 | 1 |"} <= {*lines}
    assert any("2026-11-21 to 2026-11-22" in line for line in lines)


def test_page_has_each_reason_once():
    lines = report.page(ROWS, "1.36.3").splitlines()
    reported = [line for line in lines if "gone" in line]
    cases = r"\[sig-node\] Pods should be \*slow\*, \[sig-node\] Pods should be late"
    assert reported == [rf"| {cases} | pod pods-\<n\> at \<address\> is \| gone |"]
    assert r"| \[sig-apps\] Job should end | no root |" in lines
    assert "| common/node/pods.go | 1 of 3 |" in lines


def test_page_leaves_out_what_did_not_happen():
    page = report.page(ROWS[:1], "1.36.3")
    assert "## Failed" not in page
    assert "## Not applicable" not in page
    assert "| all |" not in page


def test_long_reason_is_cut():
    page = report.page([row("[sig-node] x", Outcome.FAILED, "far " * 200)], "1.36.3")
    assert max(map(len, page.splitlines())) < 300


def test_newer_row_replaces_and_others_stay():
    again = row(ROWS[1].name, Outcome.PASSED, date="2026-11-23")
    found = results.merged(ROWS, [again])
    assert again in found
    assert ROWS[1] not in found
    assert len(found) == len(ROWS)


def test_document_is_read_back(tmp_path, monkeypatch):
    monkeypatch.setattr("tests.bench.results.RESULTS", tmp_path)
    path = results.keep(ROWS, "1.36.3")
    assert results.read(json.loads(path.read_text()), "1.36.3") == ROWS
    assert results.kept("1.36.3", tmp_path) == ROWS
    assert results.kept("1.37.0", tmp_path) == []
    assert results.kept("1.36.3", tmp_path / "none") == []
