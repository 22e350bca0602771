"""Which containers run another image than their pod says."""

import pytest

from isthmus.kubelet.pods.decision.replacing import changed, is_current
from isthmus.kubelet.translate import pod as translate
from tests.support.pods.objects import container, pod, resolved
from tests.support.pods.statuses import ended, report, running, status, waiting

POD = pod(container("app"), initContainers=[container("setup")])
OTHER = {"app": "app"}


@pytest.mark.parametrize(
    ("reported", "phase", "found"),
    [
        ({"app": running(image_name="app")}, "running", {}),
        ({"app": running(image_name="old")}, "running", OTHER),
        ({"app": running(image_name="old")}, "starting", OTHER),
        ({"app": running(image_name="old")}, "stopping", {}),
        ({"app": running(image_name="old")}, "ended", {}),
        ({"app": waiting(image_name="old")}, "running", OTHER),
        # It waits for an image.
        ({"app": waiting("", image_name="")}, "running", OTHER),
        ({"app": ended(image_name="old")}, "running", {}),
        # A supervisor of before, or of a plan of before.
        ({"app": running()}, "running", {}),
        ({"app": running(image_name=None)}, "running", {}),
        ({"app": running(image_name="app"), "setup": waiting(image_name="old")}, "running", {"setup": "app"}),
        ({}, "running", {}),
    ],
)
def test_containers_of_another_image_are_found(reported, phase, found):
    assert changed(POD, report(phase, **reported)) == found


def test_pod_that_goes_or_has_not_begun_is_left_alone():
    leaving = {**POD, "metadata": {**POD["metadata"], "deletionTimestamp": "2026-01-02T03:00:00Z"}}
    assert (changed(leaving, report(app=running(image_name="old"))), changed(POD, None)) == ({}, {})


@pytest.mark.parametrize("kind", ["init", "containers"])
def test_plan_of_a_while_ago_is_not_current(kind):
    plan = translate.plan(POD, resolved())
    assert is_current(plan, POD)
    old = tuple(one._replace(image_name="old") for one in getattr(plan, kind))
    assert not is_current(plan._replace(**{kind: old}), POD)


@pytest.mark.parametrize(
    ("reported", "image"), [({"image_name": "old"}, "old"), ({"image_name": ""}, "app"), ({}, "app")]
)
def test_status_names_the_image_that_runs(reported, image):
    found = status(pod(container("app")), report(app=running(**reported)))
    assert found["containerStatuses"][0]["image"] == image
