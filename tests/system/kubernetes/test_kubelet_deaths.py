"""kill -9 of the kubelet at random moments, while pods come and go: none lost, none twice."""

import secrets
import time

import pytest

from tests.support.clusters import kubelet_kills
from tests.support.wait import wait

DEATHS = 3
CONVERGED_S = 180
ENDING = [f"ends-{number}" for number in range(7)]
DELETED = [f"deleted-{number}" for number in range(3)]


@pytest.fixture(scope="module")
def reader(space, nodes):
    """How the pod that runs all the time was, before all others came and went and the kubelet died three times."""
    space.ready("pod/reader")
    before = space.container("reader", "reader")
    kubelet_kills.make(space, dict.fromkeys(ENDING, 2) | dict.fromkeys(DELETED, 1000))
    for number in range(DEATHS):
        time.sleep(3 * secrets.randbelow(1000) / 1000)
        if number == 1:
            kubelet_kills.delete(space, DELETED)
        kubelet_kills.kill(space.cluster, nodes)
    return before


def test_no_pod_is_lost(space, reader):
    ended = {name: space.ended(name, CONVERGED_S) for name in ENDING}
    assert not [status for status in ended.values() if status["phase"] != "Succeeded"]


def test_deleted_pods_and_their_jobs_are_gone(space, reader, controller):
    space.kubectl(f"wait --for=delete pod/{' pod/'.join(DELETED)} --timeout={CONVERGED_S}s")
    names = f"squeue --noheader --user={space.cluster.user} --format=%j"
    wait(lambda: controller.output(names).split(), lambda found: not set(DELETED) & set(found))


def test_no_pod_starts_twice(space, reader):
    for name in ENDING:
        space.ended(name, CONVERGED_S)
    starts = kubelet_kills.starts(space)
    assert {name: len(starts[name]) for name in ENDING} == dict.fromkeys(ENDING, 1)
    assert not [name for name in DELETED if len(starts[name]) > 1]


def test_running_pod_goes_on(space, reader):
    """The same container, which has not noticed."""
    after = space.container("reader", "reader")
    assert (after["containerID"], after["restartCount"]) == (reader["containerID"], 0)
    assert "running" in after["state"]
