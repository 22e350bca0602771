"""A sample of tests/full/test_network_faults.py, a case for each daemon."""

import pytest

from tests.support.clusters.network_faults import Daemon, Fault, Phase
from tests.support.clusters.network_state import Baseline

SAMPLE = [
    (Daemon.NETWORKD, Phase.PROLOG),
    (Daemon.ETCD, Phase.RUNNING),
    (Daemon.SLURMD, Phase.EPILOG),
]


@pytest.mark.parametrize(("daemon", "phase"), SAMPLE)
def test_death_leaves_nothing(cluster, user, two_computes, whole, daemon, phase):
    baseline = Baseline.of(cluster)
    ended = Fault(cluster, user, daemon, phase).run()
    assert ended.ran or ended.failed_clearly, ended
    baseline.wait()
