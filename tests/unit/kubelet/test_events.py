"""Events, from how a status changed."""

import pytest

from isthmus.kubelet.pods.unready import UnreadyError
from isthmus.kubelet.status.events import Event, Kind, changes, full_name, reported
from isthmus.kubelet.status.pod import held, pod_status, refused, unready
from isthmus.model.pod_inputs import ImageState
from isthmus.model.pod_job import JobState
from isthmus.podproto.reasons import Reason
from tests.support.pods.objects import pod
from tests.support.pods.statuses import at, ended, job, report, running, waiting

STARTED = [("Normal", "Created", "Container created"), ("Normal", "Started", "Container started")]
PENDING = job(JobState.PENDING, reason="Priority")


def status(reported=None, slurm=None, **images):
    return pod_status(pod(), reported, slurm, images, at(60))


@pytest.mark.parametrize(
    ("old", "new", "slurm", "expected"),
    [
        (status(), status(slurm=PENDING), PENDING, [("Normal", "Queued", "Slurm job 12 is pending: Priority")]),
        (status(slurm=PENDING), status(slurm=PENDING), PENDING, []),
        (
            status(slurm=PENDING),
            status(slurm=job(JobState.PENDING, reason="Resources")),
            PENDING,
            [("Normal", "Queued", "Slurm job 12 is pending: Resources")],
        ),
        (status(slurm=PENDING), status(slurm=job()), job(), [("Normal", "Scheduled", "Slurm job 12 got c1")]),
        (
            status(slurm=job()),
            status(report(app=running()), job()),
            job(),
            STARTED,
        ),
        (status(report(app=running()), job()), status(report(app=running()), job()), job(), []),
        (
            status(report(app=running()), job()),
            status(report(app=running(restarts=1)), job()),
            job(),
            STARTED,
        ),
        (
            status(report(app=running()), job()),
            status(report(app=running(ready=False)), job()),
            job(),
            [],
        ),
        (
            status(report(app=running()), job()),
            status(report(app=waiting("CrashLoopBackOff", message="10s", last=ended(1))), job()),
            job(),
            [("Warning", "BackOff", "Back-off restarting failed container app in pod web_ns(u)")],
        ),
        (
            status(report(app=running()), job()),
            status(report(app=ended(137, reason="OOMKilled")), job()),
            job(),
            [("Warning", "OOMKilling", "Container app: killed")],
        ),
        (
            status(),
            status(app=ImageState("ErrImagePull", "denied")),
            None,
            [("Warning", "Failed", "Failed to pull image: denied")],
        ),
        (
            status(),
            unready(pod(), UnreadyError(Reason.MOUNT, "no claim"), {}, at(60)),
            None,
            [("Warning", "FailedMount", "no claim")],
        ),
        (
            status(),
            unready(pod(), UnreadyError(Reason.SANDBOX, "no runtime"), {}, at(60)),
            None,
            [("Warning", "FailedCreatePodSandBox", "Failed to create pod sandbox: no runtime")],
        ),
        (
            status(),
            unready(pod(), UnreadyError(Reason.CONFIG, "no map", "app"), {}, at(60)),
            None,
            [("Warning", "Failed", "Error: no map")],
        ),
        *(
            (status(), held(status(), reason, "so"), None, [("Warning", reason, "so")])
            for reason in (Reason.SUBMIT, Reason.HOME_FULL, Reason.HOME_UNAVAILABLE)
        ),
        ({}, refused(pod(), ["a; b"], at(60)), None, [("Warning", "UnsupportedPod", "a; b")]),
        (
            status(report(app=running()), job()),
            status(report(app=running()), job(JobState.NODE_FAIL)),
            job(JobState.NODE_FAIL),
            [("Warning", "NODE_FAIL", "Slurm job 12 lost its node (state NODE_FAIL, on c1)")],
        ),
    ],
)
def test_change_is_an_event(old, new, slurm, expected):
    assert [(one.kind, one.reason, one.message) for one in changes(old, new, slurm, "web_ns(u)")] == expected


def test_event_names_its_container():
    [_, found] = changes(status(slurm=job()), status(report(app=running()), job()), job())
    assert found == Event(Kind.NORMAL, "Started", "Container started", "spec.containers{app}")


def failing(times, killing="", kind="liveness"):
    return running(failures={kind: {"times": times, "message": "HTTP status 500"}}, killing=killing)


def killing(times):
    return running(oom_kills=times)


KILLED = "Container app failed liveness probe, will be restarted"
NO_MEMORY = "The kernel ended {} of its processes: the memory of the pod is used up; request more"
FAILED = ("Warning", "Unhealthy", "Liveness probe failed: HTTP status 500")


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (None, running(), []),
        (None, failing(1), [FAILED]),
        (running(), failing(2), [FAILED]),
        (failing(2), failing(2), []),
        (failing(2), failing(3, KILLED), [FAILED, ("Normal", "Killing", KILLED)]),
        (failing(3, KILLED), failing(3, KILLED), []),
        (
            running(),
            failing(1, kind="readiness"),
            [("Warning", "Unhealthy", "Readiness probe failed: HTTP status 500")],
        ),
        (running(), failing(1, kind="startup"), [("Warning", "Unhealthy", "Startup probe failed: HTTP status 500")]),
        (running(), killing(0), []),
        (running(), killing(2), [("Warning", "OOMKilling", NO_MEMORY.format(2))]),
        (killing(2), killing(3), [("Warning", "OOMKilling", NO_MEMORY.format(1))]),
        (killing(3), killing(3), []),
    ],
)
def test_what_no_status_shows_is_an_event(old, new, expected):
    found = reported(pod(), old and report(app=old), report(app=new))
    assert [(one.kind, one.reason, one.message) for one in found] == expected
    assert {one.place for one in found} <= {"spec.containers{app}"}


def test_pod_is_named_as_the_official_kubelet_does():
    assert full_name({"metadata": {"name": "web", "namespace": "ns", "uid": "u"}}) == "web_ns(u)"
