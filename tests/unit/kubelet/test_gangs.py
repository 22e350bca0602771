"""Which pods start together, and whether they can; pure."""

import pytest

from isthmus.kubelet.gangs import fitting, groups
from isthmus.kubelet.gangs.fitting import Need
from isthmus.kubelet.gangs.gang import Gang, Stage
from isthmus.model.slurm.cluster import NodeRoom
from tests.support.pods.objects import pod

LABELLED = {"metadata": {"name": "w", "namespace": "shop", "labels": {groups.LABEL: "pi"}}, "spec": {}}


def test_group_of_a_label():
    found = groups.of(LABELLED)
    assert found.path("v1alpha1") == "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/shop/podgroups/pi"


def test_group_of_kubernetes_wins_over_a_label():
    found = groups.of({**LABELLED, "spec": {"schedulingGroup": {"podGroupName": "own"}}})
    assert found.path("v1beta1") == "/apis/scheduling.k8s.io/v1beta1/namespaces/shop/podgroups/own"
    assert groups.of(pod()) is None


@pytest.mark.parametrize(
    ("spec", "least"),
    [
        ({"minMember": 3}, 3),
        ({}, 1),
        ({"schedulingPolicy": {"gang": {"minCount": 4}}}, 4),
        ({"schedulingPolicy": {"basic": {}}}, 1),
    ],
)
def test_least_number_of_pods(spec, least):
    assert groups.least({"spec": spec}) == least


@pytest.mark.parametrize(
    ("options", "needs"),
    [
        (("--cpus-per-task=2", "--mem=300M"), [Need(2, 300)]),
        (("--cpus-per-task=2", "--mem=1G", "--ntasks=4"), [Need(8, 1024)]),
        (("--cpus-per-task=2", "--mem=300M", "--nodes=2", "--ntasks-per-node=3"), [Need(6, 300)] * 2),
        (("--cpus-per-task=1", "--mem-per-cpu=100M", "--nodes=2", "--ntasks=8"), [Need(4, 400)] * 2),
        (("--cpus-per-task=1", "--mem=1", "--nodes=2-4"), [Need(1, 1)] * 2),
        (("--job-name=x", "--no-requeue"), [Need(1, 0)]),
    ],
)
def test_needs_of_a_job(options, needs):
    assert fitting.needs(options) == needs


def rooms(*free, cpus=4, memory=1000):
    return [NodeRoom(f"c{number}", one, memory, cpus, memory) for number, one in enumerate(free)]


@pytest.mark.parametrize(
    ("cpus", "free", "fits"),
    [
        ((4, 4), (4, 4), True),
        ((4, 4), (4, 3), False),
        ((1, 3, 4), (4, 4), True),
        ((3, 3, 2), (4, 4), False),
        ((1,), (), False),
        # The largest first, and where least stays free.
        ((2, 2, 4), (4, 4), True),
        ((1, 1, 3), (3, 2), True),
    ],
)
def test_needs_fit_at_once(cpus, free, fits):
    assert fitting.fits([Need(count, 10) for count in cpus], rooms(*free)) == fits


def test_memory_counts():
    assert not fitting.fits([Need(1, 600), Need(1, 600)], rooms(4))
    assert fitting.fits([Need(1, 600), Need(1, 600)], rooms(4, 4))


@pytest.mark.parametrize(
    ("needs", "why"),
    [
        ([Need(5, 1)], "one of its pods needs 5 CPUs of a node, and the largest has 4"),
        ([Need(1, 1001)], "needs 1001 MiB of a node"),
        ([Need(2, 1)] * 5, "its pods need 10 CPUs together, and all nodes have 8"),
        ([Need(1, 700)] * 3, "its pods need 2100 MiB together"),
        ([Need(4, 1)] * 2, ""),
    ],
)
def test_needs_that_can_never_be_met(needs, why):
    reported = fitting.never(needs, rooms(0, 0))
    assert (why in reported) if why else not reported


def test_more_than_half_of_a_node_each():
    nodes = [*rooms(0, 0, cpus=10), *rooms(0, cpus=2)]
    assert "need more than half of a node each" in fitting.never([Need(6, 1)] * 4, [*nodes[:2], *rooms(0, cpus=4)])


def test_no_node_at_all_is_never():
    assert "the largest has 0" in fitting.never([Need(1, 1)], [])


def test_gang_is_complete_or_waits():
    gang = Gang()
    assert gang.join("a", [Need(1, 1)]) is Stage.WAITING
    assert gang.missing(2) == 1
    gang.join("b", [Need(2, 1)])
    assert (gang.missing(2), gang.wanted()) == (0, [Need(1, 1), Need(2, 1)])


def test_gang_starts_when_each_has_nodes():
    gang = Gang()
    for uid in "ab":
        gang.join(uid, [])
    gang.move(["a", "b"], Stage.STARTING)
    gang.members["a"].has_nodes = True
    assert not gang.has_all_nodes()
    # One that tries once more stays where it was.
    assert gang.join("b", []) is Stage.STARTING
    gang.members["b"].has_nodes = True
    assert gang.has_all_nodes()


def test_what_replaces_a_pod_starts_by_itself():
    gang = Gang()
    gang.adopt("a")
    gang.adopt("b")
    gang.join("c", [])
    assert gang.is_loose(2)
    assert not gang.is_loose(3)
