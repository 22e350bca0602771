"""A pod's status from the supervisor's report and Slurm's word."""

from dataclasses import replace

import pytest

from isthmus.kubelet.pods.unready import UnreadyError
from isthmus.kubelet.status.pod import refused, unready
from isthmus.model.pod_inputs import ImageState
from isthmus.model.pod_job import JobState
from isthmus.podproto.reasons import Reason
from tests.support.pods.objects import container, pod
from tests.support.pods.statuses import at, ended, job, report, reported_by, running, status, text, waiting

OOM = {"exit_code": 137, "signal": 9, "reason": "OOMKilled"}


def condition(found, kind):
    return next(one for one in found["conditions"] if one["type"] == kind)


@pytest.mark.parametrize(
    ("slurm", "reason", "message"),
    [
        (job(JobState.PENDING, reason="Resources"), "Resources", "Slurm job 12 is pending: Resources"),
        (job(JobState.PENDING, reason="Priority"), "Priority", "is pending: Priority"),
        (job(JobState.PENDING, reason="QOSMaxJobsPerUserLimit"), "QOSMaxJobsPerUserLimit", "QOSMaxJobsPerUserLimit"),
        (
            job(JobState.PENDING, reason="ReqNodeNotAvail, UnavailableNodes:c1"),
            "ReqNodeNotAvail",
            "is pending: ReqNodeNotAvail, UnavailableNodes:c1",
        ),
        (job(JobState.PENDING, reason="None"), "Pending", "is pending: Slurm has not looked"),
        (job(JobState.PENDING), "Pending", "is pending: Slurm has not looked"),
        (job(JobState.REQUEUE_HOLD), "REQUEUE_HOLD", "is pending: REQUEUE_HOLD"),
    ],
)
def test_waiting_job_reports_why(slurm, reason, message):
    found = status(slurm=slurm)
    assert (found["phase"], found["reason"]) == ("Pending", reason)
    assert message in found["message"]
    assert "containerStatuses" not in found
    scheduled = condition(found, "PodScheduled")
    assert (scheduled["status"], scheduled["reason"], scheduled["message"]) == ("False", reason, found["message"])


@pytest.mark.parametrize(
    ("reported", "slurm", "images", "expected"),
    [
        (None, None, {}, ("Pending", None, "waiting", "ContainerCreating")),
        (None, None, {"app": ImageState("ErrImagePull", "no")}, ("Pending", None, "waiting", "ErrImagePull")),
        (None, job(JobState.CONFIGURING), {}, ("Pending", None, "waiting", "ContainerCreating")),
        (None, job(), {}, ("Pending", None, "waiting", "ContainerCreating")),
        (report("starting"), job(), {}, ("Pending", None, "waiting", "ContainerCreating")),
        (report(app=waiting("StartError")), job(), {}, ("Pending", None, "waiting", "StartError")),
        (report(app=running()), job(), {}, ("Running", None, "running", None)),
        (report(app=running()), None, {}, ("Running", None, "running", None)),
        (report(app=running()), job(JobState.SUSPENDED), {}, ("Running", None, "running", None)),
        (report(app=ended(0)), job(), {}, ("Running", None, "terminated", "Completed")),
        (report(app=ended(1)), job(), {}, ("Running", None, "terminated", "Error")),
        (
            report(app=waiting("CrashLoopBackOff", restarts=2, last=ended(1))),
            job(),
            {},
            ("Running", None, "waiting", "CrashLoopBackOff"),
        ),
        (
            report("starting", {"reason": "FailedMount", "message": "no /x"}),
            job(),
            {},
            ("Pending", "FailedMount", "waiting", "ContainerCreating"),
        ),
        (
            report("ended", {"reason": "FailedMount", "message": "no /x"}),
            job(JobState.FAILED, exit_code=1),
            {},
            ("Failed", "FailedMount", "waiting", "FailedMount"),
        ),
        (report("ended", app=ended(0)), job(), {}, ("Succeeded", None, "terminated", "Completed")),
        (report("ended", app=ended(0)), job(JobState.COMPLETED), {}, ("Succeeded", None, "terminated", "Completed")),
        (report("ended", app=ended(2)), job(JobState.FAILED), {}, ("Failed", None, "terminated", "Error")),
        (report("ended", app=running()), job(), {}, ("Failed", None, "terminated", "ContainerStatusUnknown")),
        (report("ended", app=ended(None)), job(), {}, ("Failed", None, "terminated", "ContainerStatusUnknown")),
    ],
)
def test_report_is_reported(reported, slurm, images, expected):
    assert reported_by(status(reported=reported, slurm=slurm, images=images)) == expected


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
@pytest.mark.parametrize("reported", [None, report(app=running()), report("ended", app=ended(0))])
def test_final_phase_stays(phase, reported):
    whole = pod()
    whole["status"] = {"phase": phase}
    assert status(whole, reported, job(JobState.NODE_FAIL))["phase"] == phase


def test_status_of_a_container_is_whole():
    last = {**OOM, "started": text(1), "finished": text(2), "message": "too much"}
    found = status(reported=report(app=running(3, restarts=2, last=last)), slurm=job())
    assert found["containerStatuses"] == [
        {
            "name": "app",
            "image": "app",
            "imageID": "app@sha256:1",
            "containerID": "apptainer://12.app.2",
            "restartCount": 2,
            "ready": True,
            "started": True,
            "state": {"running": {"startedAt": "2026-01-02T03:00:03Z"}},
            "lastState": {
                "terminated": {
                    "exitCode": 137,
                    "signal": 9,
                    "reason": "OOMKilled",
                    "message": "too much",
                    "startedAt": "2026-01-02T03:00:01Z",
                    "finishedAt": "2026-01-02T03:00:02Z",
                }
            },
        }
    ]


def test_kinds_of_containers_have_lists_of_their_own():
    sidecar = container("s", restartPolicy="Always")
    whole = pod(initContainers=[sidecar, container("i")], ephemeralContainers=[container("e")])
    reported = report(s=running(), i=ended(0), e=running(), app=waiting("PodInitializing"))
    found = status(whole, reported, job())
    ready = {kind: [(one["name"], one["ready"]) for one in found[kind]] for kind in found if kind.endswith("Statuses")}
    assert ready == {
        "initContainerStatuses": [("s", True), ("i", True)],
        "containerStatuses": [("app", False)],
        "ephemeralContainerStatuses": [("e", False)],
    }


def test_addresses_are_the_pods_and_the_hosts():
    found = status(reported={**report(app=running()), "addresses": ["10.64.0.9", "fd00::9"]}, slurm=job())
    assert (found["podIP"], found["podIPs"]) == ("10.64.0.9", [{"ip": "10.64.0.9"}, {"ip": "fd00::9"}])
    assert (found["hostIP"], found["hostIPs"]) == ("192.0.2.1", [{"ip": "192.0.2.1"}])


def test_equal_inputs_give_an_equal_status():
    whole = pod()
    whole["metadata"]["generation"] = 3
    whole["status"] = {"qosClass": "Burstable"}
    first = status(whole, report(app=running()), job(), now=60)
    again = status({**whole, "status": first}, report(app=running()), job(), now=99)
    assert again == first
    assert (first["qosClass"], first["observedGeneration"]) == ("Burstable", 3)
    assert first["startTime"] == "2026-01-02T03:01:00Z"


def test_refused_pod_fails_with_all_reasons():
    found = refused(pod(), ["a; b", "c; d"], at(0))
    assert (found["phase"], found["reason"], found["message"]) == ("Failed", "UnsupportedPod", "a; b; c; d")


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (UnreadyError(Reason.CONFIG, "no map", "app"), (None, "CreateContainerConfigError", "no map")),
        # `kubectl get pods` shows what the last container waits for, and the pod's own reason only without that.
        (UnreadyError(Reason.MOUNT, "no claim"), ("FailedMount", "FailedMount", "no claim")),
        (UnreadyError(Reason.SUBMIT, "no slurmctld"), ("FailedSubmit", "FailedSubmit", "no slurmctld")),
    ],
)
def test_pod_that_misses_something_waits(error, expected):
    found = unready(pod(), error, {"app": ImageState(id="app@sha256:1")}, at(0))
    waits = found["containerStatuses"][0]
    assert (found["phase"], waits["imageID"]) == ("Pending", "app@sha256:1")
    assert (found.get("reason"), *map(waits["state"]["waiting"].get, ("reason", "message"))) == expected


def test_image_that_cannot_be_had_is_not_hidden_by_what_the_pod_misses():
    images = {"app": ImageState("ErrImagePull", "no such image")}
    [waits] = unready(pod(), UnreadyError(Reason.MOUNT, "no claim"), images, at(0))["containerStatuses"]
    assert waits["state"]["waiting"] == {"reason": "ErrImagePull", "message": "no such image"}


@pytest.mark.parametrize("stamp", ["", "yesterday", None, 12])
def test_time_that_is_none_is_left_out(stamp):
    found = status(reported=report(app=running(started=stamp)), slurm=replace(job(), started=None))
    assert found["containerStatuses"][0]["state"] == {"running": {}}
