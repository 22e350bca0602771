import pytest

from tests.conformance.junit import Outcome, Verdict, verdict

NAME = "[sig-node] Pods should be quick [Conformance]"
OTHER = '<testcase name="[It] [sig-apps] Job" status="skipped"><skipped message="skipped"></skipped></testcase>'


def report(*entries):
    return f"<testsuites><testsuite>{OTHER}{''.join(entries)}</testsuite></testsuites>"


def entry(status, inside="", name=f"[It] {NAME}"):
    return f'<testcase name="{name}" status="{status}" time="12.34">{inside}</testcase>'


FAILURE = """<failure type="failed">[FAILED] Timed out after 300s.
Expected pod to be Running
In [It] at: k8s.io/kubernetes/test/e2e/x.go:12 @ 11/21/26 18:00:00.0
</failure><system-err>much</system-err>"""


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        ([entry("passed")], Verdict(Outcome.PASSED, 12.3)),
        (
            [entry("failed", FAILURE)],
            Verdict(Outcome.FAILED, 12.3, "Timed out after 300s.\nExpected pod to be Running"),
        ),
        (
            [entry("timedout", '<error type="timedout">[TIMEDOUT] A suite timeout occurred\n</error>')],
            Verdict(Outcome.FAILED, 12.3, "A suite timeout occurred"),
        ),
        ([entry("interrupted")], Verdict(Outcome.FAILED, 12.3, "interrupted")),
        (
            [entry("skipped", '<skipped message="skipped - Requires two nodes"></skipped>')],
            Verdict(Outcome.INAPPLICABLE, 0.0, "the suite skips it: Requires two nodes"),
        ),
        (
            [entry("skipped", '<skipped message="skipped"></skipped>')],
            Verdict(Outcome.FAILED, 0.0, "the suite did not run it"),
        ),
        ([], Verdict(Outcome.FAILED, 0.0, "the suite did not run it")),
        (
            [entry("failed", FAILURE, "[SynchronizedBeforeSuite]"), entry("skipped")],
            Verdict(
                Outcome.FAILED, 0.0, "[SynchronizedBeforeSuite]: Timed out after 300s.\nExpected pod to be Running"
            ),
        ),
    ],
)
def test_verdict_of_a_report(entries, expected):
    assert verdict(report(*entries), NAME) == expected


def test_no_report_is_no_success():
    assert verdict("", NAME).outcome is Outcome.FAILED
