"""Events, from how a status changed."""

import pytest

from isthmus.kubelet.events import Event, Kind, changes
from isthmus.kubelet.status import pod_status, refused, unready
from isthmus.kubelet.unready import Unready, UnreadyError
from isthmus.model.pod_inputs import ImageState
from isthmus.model.pod_job import JobState
from tests.support.pods import pod
from tests.support.reports import at, ended, job, report, running, waiting

PENDING = job(JobState.PENDING, reason="Priority")


def status(told=None, slurm=None, **images):
    return pod_status(pod(), told, slurm, images, at(60))


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
            [("Normal", "Started", "Container app started")],
        ),
        (status(report(app=running()), job()), status(report(app=running()), job()), job(), []),
        (
            status(report(app=running()), job()),
            status(report(app=running(restarts=1)), job()),
            job(),
            [("Normal", "Started", "Container app started")],
        ),
        (
            status(report(app=running()), job()),
            status(report(app=running(ready=False)), job()),
            job(),
            [("Warning", "Unhealthy", "Container app is no longer ready")],
        ),
        (
            status(report(app=running()), job()),
            status(report(app=waiting("CrashLoopBackOff", message="10s", last=ended(1))), job()),
            job(),
            [("Warning", "BackOff", "Back-off restarting failed container: 10s")],
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
            unready(pod(), UnreadyError(Unready.MOUNT, "no claim"), {}, at(60)),
            None,
            [("Warning", "FailedMount", "no claim")],
        ),
        (
            status(),
            unready(pod(), UnreadyError(Unready.CONFIG, "no map", "app"), {}, at(60)),
            None,
            [("Warning", "Failed", "Error: no map")],
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
    assert [(one.kind, one.reason, one.message) for one in changes(old, new, slurm)] == expected


def test_event_names_its_container():
    [found] = changes(status(slurm=job()), status(report(app=running()), job()), job())
    assert found == Event(Kind.NORMAL, "Started", "Container app started", "spec.containers{app}")
