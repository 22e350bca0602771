"""Each daemon dies at each phase of a job with a pod network; tests/site has a sample."""

import pytest

from tests.support.clusters.network_faults import CASES, Fault, Phase
from tests.support.clusters.network_state import Baseline

# A job that has its pods, or is done with them, needs none of the daemons.
UNNOTICED = {Phase.RUNNING, Phase.AFTER}


@pytest.fixture(scope="module")
def baseline(cluster, two_computes):
    return Baseline.of(cluster)


@pytest.mark.parametrize(("daemon", "phase"), CASES)
def test_death_leaves_nothing_and_no_doubt(cluster, user, baseline, daemon, phase):
    ended = Fault(cluster, user, daemon, phase).run()
    assert ended.ran or (phase not in UNNOTICED and ended.failed_clearly), ended
    baseline.wait()
