"""What is kept, and how one goes on with it."""

import json

import pytest

from isthmus.bench import plan, results
from isthmus.bench.results import Document, ResultsError
from isthmus.bench.sizes import SIZES, Table
from tests.support.files import bench_results
from tests.support.files.bench_results import ABOUT

RUNS = plan.make([Table.EP], SIZES["smoke"], plan.Cluster(4, 96, 24576)).runs


@pytest.fixture
def file(tmp_path):
    return tmp_path / "results.json"


def test_what_is_written_is_read(file):
    document = bench_results.document(rounds=1)
    results.write(document, file)
    assert results.read(file) == document
    assert json.loads(file.read_text())["schema"] == results.SCHEMA


def test_failed_run_is_not_done_and_its_success_takes_its_place():
    document = Document("smoke", ABOUT).with_result(bench_results.failed(RUNS[0], "lost"))
    assert document.done == frozenset()
    document = document.with_result(bench_results.result(RUNS[0]))
    assert document.done == {RUNS[0].key}
    assert len(document.results) == 1


def test_going_on_keeps_results_and_takes_the_new_reasons(file):
    first = Document("smoke", ABOUT, {"a/b/c": "old"}, (bench_results.result(RUNS[0]),))
    results.write(first, file)
    found = results.resume(file, "smoke", ABOUT, {"d/e/f": "new"})
    assert found.done == {RUNS[0].key}
    assert found.left_out == {"d/e/f": "new"}


def test_nothing_there_begins_a_document(file):
    assert results.resume(file, "smoke", ABOUT, {}) == Document("smoke", ABOUT, {})


@pytest.mark.parametrize(
    ("size", "about", "reason"),
    [
        ("paper", ABOUT, "has results of size smoke, not paper; name another file with --output"),
        ("smoke", ABOUT | {"cluster": "other"}, "has results of cluster test, not other"),
    ],
)
def test_results_of_another_are_not_mixed(file, size, about, reason):
    results.write(Document("smoke", ABOUT), file)
    with pytest.raises(ResultsError, match=reason):
        results.resume(file, size, about, {})


@pytest.mark.parametrize("text", ["", "{}", '{"schema": 2}', '{"schema": 1, "results": [{"round": 1}]}', "[1]"])
def test_what_are_no_results_is_refused(file, text):
    file.write_text(text)
    with pytest.raises(ResultsError, match="holds no results"):
        results.read(file)


def test_results_of_another_schema_are_not_read(file):
    results.write(bench_results.document(rounds=1), file)
    file.write_text(json.dumps(json.loads(file.read_text()) | {"schema": results.SCHEMA + 1}))
    with pytest.raises(ResultsError, match="only schema 1 is known here"):
        results.read(file)


def test_missing_file_says_what_to_do(file):
    with pytest.raises(ResultsError, match="run `isthmus bench run` first"):
        results.read(file)


def test_plain_kubernetes_is_not_added_to_rounds_that_are_over(file):
    with_plain = ABOUT | {"plain": {"count": 4}}
    results.write(Document("smoke", ABOUT, {}, (bench_results.result(RUNS[0]),)), file)
    assert RUNS[0].round == 0
    assert results.resume(file, "smoke", with_plain, {}).about["plain"] == {"count": 4}
    results.write(Document("smoke", ABOUT, {}, (bench_results.result(RUNS[-1]),)), file)
    with pytest.raises(ResultsError, match="begun without a plain Kubernetes; name another file with --output"):
        results.resume(file, "smoke", with_plain, {})


def test_what_is_known_of_a_plain_kubernetes_outlives_a_session_without_it(file):
    with_plain = ABOUT | {"plain": {"count": 4}}
    results.write(Document("smoke", with_plain, {}, (bench_results.result(RUNS[-1]),)), file)
    assert results.resume(file, "smoke", ABOUT, {}).about == with_plain
    assert results.resume(file, "smoke", ABOUT | {"plain": {"count": 3}}, {}).about["plain"] == {"count": 3}
