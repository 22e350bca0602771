import json
from dataclasses import asdict

import pytest

from tests.conformance import report, results
from tests.conformance.cases import Case
from tests.conformance.junit import Outcome, Verdict
from tests.conformance.results import Row

CASE = Case("[sig-node] Pods should be *quick* " + "and so on " * 20, "common/node/pods.go")


@pytest.mark.parametrize("outcome", Outcome)
def test_words_of_a_failed_case_alone_are_kept(tmp_path, outcome):
    results.keep_log(CASE, Verdict(outcome, 1.0), "said", "conformance", tmp_path)
    found = [path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.log")]
    assert len(found) == (outcome is Outcome.FAILED)
    assert all(name.startswith("logs/conformance/sig-node-Pods-should-be-quick-and-so") for name in found)
    assert all(len(name) < 150 for name in found)


def test_publishing_keeps_the_cases_that_were_not_run_here(tmp_path):
    here, published = tmp_path / "results", tmp_path / "published"
    old = [Row("[sig-apps] a", "a.go", Outcome.PASSED, 1.0, "", "2026-01-01")]
    old += [Row("[sig-node] b", "b.go", Outcome.FAILED, 1.0, "slow", "2026-01-01")]
    new = Row("[sig-node] b", "b.go", Outcome.PASSED, 1.0, "", "2026-01-02")
    for folder, rows in ((published, old), (here, [new])):
        folder.mkdir()
        document = {"schema": 1, "kubernetes": "1.36.3", "cases": [asdict(one) for one in rows]}
        (folder / "conformance.json").write_text(json.dumps(document))
    assert results.publish("1.36.3", folder=here, published=published) == [old[0], new]
    assert results.kept("1.36.3", published) == [old[0], new]


def test_nothing_is_published_where_nothing_was_run(tmp_path):
    assert results.publish("1.36.3", folder=tmp_path, published=tmp_path) == []
    assert not any(tmp_path.iterdir())


def test_page_is_made_of_what_is_published():
    document = json.loads((results.PUBLISHED / "conformance.json").read_text())
    page = report.page(results.read(document, document["kubernetes"]), document["kubernetes"])
    assert (results.PUBLISHED / "conformance.md").read_text() == page
