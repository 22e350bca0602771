"""The runner against a suite that is a script: what it is given, what comes back."""

import stat

import pytest

from tests.bench import testbed
from tests.conformance.cases import Case
from tests.conformance.junit import Outcome
from tests.conformance.suite import Suite

CASE = Case('[sig-node] Pods should be "quick" (it\'s $HOME) [Conformance]', "common/node/pods.go")


class HereBed(testbed.TestBed):
    """This machine, by its own shell."""

    ssh = ("sh", "-c")


@pytest.fixture
def suite(tmp_path, monkeypatch):
    def make(body, limit_s=5):
        programs = {
            "isthmus": '[ "$1" != kubeconfig ] || echo /home/of carol/kubeconfig',
            "kubectl": """echo '{"serverVersion": {"gitVersion": "v1.36.3"}}'""",
            "e2e.test": body,
        }
        for name, script in programs.items():
            path = tmp_path / name
            path.write_text(f"#!/bin/bash\n{script}\n")
            path.chmod(path.stat().st_mode | stat.S_IXUSR)
        (tmp_path / ".bash_profile").write_text(f'PATH="{tmp_path}:$PATH"\n')
        monkeypatch.setenv("HOME", str(tmp_path))
        return Suite(HereBed("x", "x", "x"), "ctl:5000/conformance", limit_s, str(tmp_path / "e2e.test"))

    return make


def report(status):
    name = CASE.name.replace('"', "&quot;")
    return f"""<testsuites><testcase name="[It] {name}" status="{status}" time="1"/></testsuites>"""


def test_suite_gets_cluster_images_and_one_case(suite):
    script = f"""
printf '%s\\n' "$@" >&2; cat "$KUBE_TEST_REPO_LIST" >&2; echo noise
cat >junit_01.xml <<'END'
{report("passed")}
END"""
    found, reported = suite(script).run(CASE)
    assert found.outcome is Outcome.PASSED
    lines = reported.splitlines()
    assert {"--kubeconfig=/home/of carol/kubeconfig", f"--ginkgo.focus={CASE.pattern}", "--ginkgo.timeout=5s"} <= {
        *lines
    }
    assert lines[-3:] == ["promoterE2eRegistry: ctl:5000/conformance", "gcRegistry: ctl:5000/conformance", "noise"]


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("echo 'cannot reach it' >&2; exit 1", "the suite ended with status 1: cannot reach it"),
        ("exit 3", "the suite ended with status 3: it said nothing"),
        ("exit 124", "the suite did not end within 125 s"),
        ("echo '<testsuites><testcase' >junit_01.xml; exit 1", "the suite's report cannot be read"),
    ],
)
def test_suite_that_breaks_is_a_failure(suite, script, reason):
    found, _ = suite(script).run(CASE)
    assert (found.outcome, found.reason.split(": unclosed")[0]) == (Outcome.FAILED, reason)


def test_nothing_is_left_behind(suite, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    suite("pwd >&2; exit 1").run(CASE)
    assert not list((tmp_path / "tmp").iterdir())


def test_version_is_the_servers(suite):
    assert suite("").up() == "1.36.3"
