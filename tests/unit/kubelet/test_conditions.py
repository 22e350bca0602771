"""A pod's conditions."""

import pytest

from isthmus.kubelet.status.conditions import merged
from isthmus.kubelet.status.pod import pod_status
from isthmus.model.pod_job import JobState
from tests.support.pods.objects import container, pod
from tests.support.pods.statuses import at, ended, job, report, running, waiting

INIT = [container("i")]
SIDE = [container("s", restartPolicy="Always")]
KINDS = ("PodReadyToStartContainers", "Initialized", "ContainersReady", "Ready", "PodScheduled")


def conditions(spec, reported, slurm=None, old=()):
    whole = pod(**spec)
    whole["status"] = {"conditions": list(old)}
    return {one["type"]: one for one in pod_status(whole, reported, slurm or job(), {}, at(60))["conditions"]}


@pytest.mark.parametrize(
    ("spec", "reported", "expected"),
    [
        ({}, None, "FTFFT"),
        ({}, report("starting"), "TTFFT"),
        ({}, report(app=running(ready=False)), "TTFFT"),
        ({}, report(app=running()), "TTTTT"),
        ({}, report("ended", app=ended(0)), "FTFFT"),
        ({}, report("ended", app=ended(1)), "FTFFT"),
        ({"initContainers": INIT}, report(i=running(), app=waiting()), "TFFFT"),
        ({"initContainers": INIT}, report(i=ended(1), app=waiting()), "TFFFT"),
        ({"initContainers": INIT}, report(i=ended(0), app=waiting()), "TTFFT"),
        ({"initContainers": INIT}, report(i=ended(0), app=running()), "TTTTT"),
        ({"initContainers": SIDE}, report(s=running(is_started=False), app=waiting()), "TFFFT"),
        ({"initContainers": SIDE}, report(s=running(ready=False), app=running()), "TTFFT"),
        ({"initContainers": SIDE}, report(s=running(), app=running()), "TTTTT"),
        ({"initContainers": SIDE}, report(s=waiting(), app=running()), "TTFFT"),
        ({"readinessGates": [{"conditionType": "x/y"}]}, report(app=running()), "TTTFT"),
    ],
)
def test_conditions_follow_the_containers(spec, reported, expected):
    found = conditions(spec, reported)
    assert "".join(found[kind]["status"][0] for kind in KINDS) == expected


@pytest.mark.parametrize(
    ("reported", "kind", "reason", "message"),
    [
        (report(app=running(ready=False)), "Ready", "ContainersNotReady", "containers with unready status: [app]"),
        (
            report(i=running(), app=waiting()),
            "Initialized",
            "ContainersNotInitialized",
            "containers with incomplete status: [i]",
        ),
        (report("ended", i=ended(0), app=ended(0)), "Ready", "PodCompleted", None),
        (report("ended", i=ended(0), app=ended(1)), "ContainersReady", "PodFailed", None),
    ],
)
def test_condition_says_why(reported, kind, reason, message):
    found = conditions({"initContainers": INIT}, reported)[kind]
    assert (found["reason"], found.get("message")) == (reason, message)


@pytest.mark.parametrize(
    ("status", "ready", "message"),
    [
        ("True", "True", None),
        ("False", "False", 'the status of pod readiness gate "x/y" is not "True", but False'),
    ],
)
def test_gate_opens_readiness_and_stays_its_owners(status, ready, message):
    gate = {"type": "x/y", "status": status, "lastTransitionTime": "t", "reason": "mine"}
    found = conditions({"readinessGates": [{"conditionType": "x/y"}]}, report(app=running()), old=[gate])
    assert (found["Ready"]["status"], found["Ready"].get("message"), found["x/y"]) == (ready, message, gate)


def test_time_changes_with_the_status_alone():
    old = [
        {"type": "Ready", "status": "True", "lastTransitionTime": "then"},
        {"type": "Initialized", "status": "False", "lastTransitionTime": "then"},
    ]
    found = conditions({}, report(app=running()), old=old)
    assert found["Ready"]["lastTransitionTime"] == "then"
    assert found["Initialized"]["lastTransitionTime"] == "2026-01-02T03:01:00Z"


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        (JobState.PREEMPTED, "PreemptionByScheduler"),
        (JobState.NODE_FAIL, "TerminationByKubelet"),
        (JobState.TIMEOUT, None),
        (JobState.CANCELLED, None),
    ],
)
def test_disruption_is_reported_to_controllers(state, reason):
    found = conditions({}, report(app=running()), job(state))
    assert found.get("DisruptionTarget", {}).get("reason") == reason


def test_words_of_a_condition_that_are_true_no_more_are_taken_back():
    old = [{"type": "Ready", "status": "False", "reason": "ContainersNotReady", "message": "x"}, {"type": "y/z"}]
    new = [{"type": "Ready", "status": "True"}, {"type": "Other", "status": "False", "reason": "Why"}]
    assert merged(new, old) == [{"type": "Ready", "status": "True", "reason": None, "message": None}, new[1]]
    assert merged([old[0]], old) == [old[0]]
