import pytest

from tests.conformance import results
from tests.conformance.cases import Case
from tests.conformance.junit import Outcome, Verdict

CASE = Case("[sig-node] Pods should be *quick* " + "and so on " * 20, "common/node/pods.go")


@pytest.mark.parametrize("outcome", Outcome)
def test_words_of_a_failed_case_alone_are_kept(tmp_path, outcome):
    results.keep_log(CASE, Verdict(outcome, 1.0), "said", "conformance", tmp_path)
    found = [path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.log")]
    assert len(found) == (outcome is Outcome.FAILED)
    assert all(name.startswith("logs/conformance/sig-node-Pods-should-be-quick-and-so") for name in found)
    assert all(len(name) < 150 for name in found)
