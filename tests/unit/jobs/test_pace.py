"""How often jobsd asks."""

import pytest

from isthmus.jobs import pace


@pytest.mark.parametrize(
    ("wanted", "took_s", "failures", "pause_s"),
    [
        ([0.0, 300.0], 0.05, 0, 1.0),
        ([5.0, 60.0], 0.05, 0, 5.0),
        ([1000.0], 0.05, 0, 300.0),
        ([0.0], 2.0, 0, 10.0),
        ([0.0], 0.05, 1, 2.0),
        ([0.0], 0.05, 3, 8.0),
        ([0.0], 0.05, 1000, 10.0),
        ([], 0.05, 0, 300.0),
    ],
)
def test_slurm_is_asked_as_often_as_somebody_needs_and_it_can(wanted, took_s, failures, pause_s):
    assert pace.jobs_s(wanted, took_s, failures) == pause_s


def test_slow_nodes_are_asked_for_less_often():
    assert (pace.nodes_s(0.1), pace.nodes_s(20)) == (30, 100)
