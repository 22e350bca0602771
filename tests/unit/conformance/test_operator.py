"""The runner of the MPI Operator's cases, against a suite that is a script."""

import pytest

from tests.bench import testbed
from tests.conformance import operator, report, results
from tests.conformance.cases import Case, Inapplicable, inapplicable
from tests.conformance.junit import Outcome
from tests.conformance.operator_suite import OperatorSuite, verdict

CASE = Case("MPIJob with OpenMPI implementation when running as root should succeed", "mpi_job_test.go")
FAILURE = "<failure type='Failure'>it did not</failure>"


class HereBed(testbed.TestBed):
    """This machine, by its own shell."""

    ssh = ("sh", "-c")


def document(inside="", name=CASE.name):
    case = f"<testcase name='{name}' time='2.34'>{inside}</testcase>"
    return f"<testsuite><testcase name='other'><skipped/></testcase>{case}</testsuite>"


@pytest.fixture
def suite(tmp_path, monkeypatch):
    def make(body):
        for name, script in {"isthmus": "echo /home/x/kubeconfig", "mpi.test": body}.items():
            (tmp_path / name).write_text(f"#!/bin/bash\n{script}\n")
            (tmp_path / name).chmod(0o755)
        (tmp_path / ".bash_profile").write_text(f'PATH="{tmp_path}:$PATH"\n')
        monkeypatch.setenv("HOME", str(tmp_path))
        return OperatorSuite(HereBed("x", "x", "x"), {"mpich": "ctl:5000/m:1"}, str(tmp_path / "mpi.test"))

    return make


def test_suite_gets_the_cluster_the_images_and_one_case(suite):
    body = f"""printf '%s\\n' "$@" "$KUBECONFIG" "$TEST_MPICH_IMAGE" "$USE_EXISTING_OPERATOR" "$TEST_INTELMPI_IMAGE" >&2
cat >report.xml <<'END'
{document()}
END"""
    found, reported = suite(body).run(CASE)
    assert (found.outcome, found.seconds) == (Outcome.PASSED, 2.3)
    focus = "-ginkgo.focus=" + CASE.name.replace(" ", "\\ ") + "$"
    assert reported.split("\n")[2:] == [focus, "-ginkgo.v", "/home/x/kubeconfig", "ctl:5000/m:1", "true", "", ""]


def test_cases_are_those_of_a_dry_run(suite):
    body = f"""[ "$3" = -ginkgo.dryRun ] && cat >report.xml <<'END'
{document()}
END"""
    assert [case.name for case in suite(body).cases()] == ["other", CASE.name]


@pytest.mark.parametrize(
    ("reported", "reason"),
    [
        (document(FAILURE), "it did not"),
        (document("<skipped/>"), "the suite did not run it"),
        (document(name="another"), "the suite did not run it"),
        ("", "the suite ended with status 2 and no report: no element found: line 1, column 0"),
    ],
)
def test_all_but_a_case_that_was_run_without_a_failure_has_failed(reported, reason):
    found = verdict(reported, CASE.name, 2)
    assert (found.outcome, found.reason) == (Outcome.FAILED, reason)


def test_case_that_cannot_apply_is_not_run(suite):
    table = [Inapplicable("as root", "no root")]
    assert operator.once(suite("exit 1"), CASE, table).reason == "no root"
    intel = Case("MPIJob with Intel Implementation", "x")
    assert operator.once(suite("exit 1"), intel, []).outcome is Outcome.INAPPLICABLE


def test_table_is_of_schedulers_and_of_root():
    assert [row.cases for row in inapplicable(operator.TABLE) if "scheduler" not in row.cases] == [
        "has malformed command should fail"
    ]


def test_page_is_of_the_operators_version(tmp_path, monkeypatch):
    rows = [results.row(CASE, verdict(document(), CASE.name), "2026-11-24")]
    page = report.operator_page(rows, "0.8.2")
    assert "| other | 1 | 0 | 0 |" in page
    assert "MPI Operator 0.8.2" in page
    monkeypatch.setattr("tests.bench.results.RESULTS", tmp_path)
    results.keep(rows, "0.8.2", operator.SUBJECT)
    assert results.kept("0.8.2", tmp_path, operator.SUBJECT) == rows
    assert results.kept("0.8.2", tmp_path) == []
