"""How often many kubelets together ask Slurm."""

import pytest

from isthmus.kubelet.slurm import pace


def a_second(kubelets, quiet_s, *, attended, pods=True):
    """Return the questions a second: squeue of those with pods, and sinfo with sacctmgr of all."""
    jobs = 1 / pace.jobs_s(quiet_s, attended=attended) if pods else 0
    return kubelets * (jobs + 2 / pace.offer_s(quiet_s))


def test_hundred_idle_kubelets_ask_less_than_once_a_second():
    assert a_second(100, 3600, attended=True) <= 1
    assert a_second(100, 3600, attended=True, pods=False) <= 1


def test_pods_that_wait_for_long_are_asked_for_each_minute():
    assert a_second(100, 3600, attended=False) <= 5


@pytest.mark.parametrize("quiet_s", [20, 60, 600, 3600, 86400])
@pytest.mark.parametrize("attended", [True, False])
def test_change_is_seen_late_by_a_part_of_what_it_took(quiet_s, attended):
    assert pace.jobs_s(quiet_s, attended=attended) <= max(5, quiet_s / 8)
    assert pace.offer_s(quiet_s) <= max(30, quiet_s / 8)
