"""What Slurm's word on an ended job makes of a pod."""

import pytest

from isthmus.model.pod_job import JobState
from tests.support.pods.objects import pod
from tests.support.pods.statuses import at, ended, job, report, reported_by, running, status, text

OOM = {"exit_code": 137, "signal": 9, "reason": "OOMKilled"}


@pytest.mark.parametrize(
    ("state", "reason", "inner"),
    [
        (JobState.TIMEOUT, "TIMEOUT", "TIMEOUT"),
        (JobState.OUT_OF_MEMORY, "OUT_OF_MEMORY", "OOMKilled"),
        (JobState.NODE_FAIL, "NODE_FAIL", "NODE_FAIL"),
        (JobState.BOOT_FAIL, "BOOT_FAIL", "BOOT_FAIL"),
        (JobState.PREEMPTED, "PREEMPTED", "PREEMPTED"),
        (JobState.CANCELLED, "CANCELLED", "CANCELLED"),
        (JobState.DEADLINE, "DEADLINE", "DEADLINE"),
        (JobState.FAILED, "FAILED", "FAILED"),
        (JobState.COMPLETED, "ContainerStatusUnknown", "ContainerStatusUnknown"),
        (JobState.GONE, "GONE", "GONE"),
    ],
)
def test_killed_job_ends_its_containers(state, reason, inner):
    found = status(reported=report(app=running()), slurm=job(state, ended=at(30)))
    assert reported_by(found) == ("Failed", reason, "terminated", inner)
    killed = found["containerStatuses"][0]["state"]["terminated"]
    assert (killed["exitCode"], killed["finishedAt"]) == (137, "2026-01-02T03:00:30Z")
    assert "Slurm job 12 " in found["message"]
    assert f"state {state}" in found["message"]


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({}, "(state CANCELLED, on c1)"),
        ({"user": "alice", "reason": "None"}, "(state CANCELLED, on c1, by alice)"),
        ({"nodes": "", "reason": "TimeLimit"}, "(state CANCELLED, reason TimeLimit)"),
        ({"exit_code": 0, "signal": 15}, "(state CANCELLED, on c1, exit code 0, signal 15)"),
        ({"exit_code": 3}, "(state CANCELLED, on c1, exit code 3, signal 0)"),
        ({"exit_code": 0}, "(state CANCELLED, on c1)"),
    ],
)
def test_message_has_all_that_slurm_knows(fields, words):
    found = status(slurm=job(JobState.CANCELLED, **fields))
    assert found["message"] == f"Slurm job 12 was cancelled {words}"


@pytest.mark.parametrize("state", [JobState.CANCELLED, JobState.NODE_FAIL, JobState.BOOT_FAIL, JobState.FAILED])
def test_job_that_never_ran_a_container_says_why(state):
    assert reported_by(status(slurm=job(state))) == ("Failed", state.value, "waiting", state.value)


@pytest.mark.parametrize(
    "state", ["TIMEOUT", "CANCELLED", "PREEMPTED", "NODE_FAIL", "BOOT_FAIL", "DEADLINE", "REVOKED"]
)
def test_good_end_after_slurms_signal_is_no_success(state):
    found = status(reported=report("ended", app=ended(0)), slurm=job(JobState(state)))
    assert reported_by(found) == ("Failed", state, "terminated", "Completed")


@pytest.mark.parametrize(
    ("phase", "slurm", "expected"),
    [
        # A container's end is reported before the pod's.
        ("stopping", job(), ("Running", None)),
        ("ended", None, ("Running", None)),
        ("ended", job(), ("Running", None)),
        ("ended", job(JobState.CANCELLED), ("Failed", "CANCELLED")),
        # `scancel --signal=TERM` ends programs, and no job.
        ("ended", job(JobState.COMPLETED), ("Succeeded", None)),
    ],
)
def test_end_after_slurms_signal_waits_for_slurms_word(phase, slurm, expected):
    found = status(reported={**report(phase, app=ended(0)), "sigterm": True}, slurm=slurm)
    assert reported_by(found) == (*expected, "terminated", "Completed")


def test_pod_that_was_ended_before_its_containers_began_waits_for_slurms_word_too():
    assert status(reported={**report("ended"), "sigterm": True}, slurm=job())["phase"] == "Pending"


@pytest.mark.parametrize("state", [JobState.RUNNING, JobState.CANCELLED])
def test_deleted_pod_does_not_wait_for_slurms_word(state):
    whole = pod()
    whole["metadata"]["deletionTimestamp"] = text(20)
    found = status(whole, {**report("ended", app=ended(0)), "sigterm": True}, job(state))
    assert (found["phase"], found.get("reason")) == ("Succeeded", None)


@pytest.mark.parametrize(
    ("reported", "expected"),
    [
        (report("ended", app=ended(**{"code": 137, "reason": "OOMKilled"})), ("Failed", "OUT_OF_MEMORY")),
        (report("ended", app=ended(0, last={**OOM})), ("Succeeded", None)),
    ],
)
def test_memory_kills_the_pod_only_when_a_container_ended_by_it(reported, expected):
    assert reported_by(status(reported=reported, slurm=job(JobState.OUT_OF_MEMORY)))[:2] == expected


@pytest.mark.parametrize(("code", "phase"), [(0, "Succeeded"), (143, "Failed")])
def test_deleted_pod_ends_as_its_containers_do(code, phase):
    whole = pod()
    whole["metadata"]["deletionTimestamp"] = text(20)
    found = status(whole, report("ended", app=ended(code)), job(JobState.CANCELLED))
    assert (found["phase"], found.get("reason")) == (phase, None)


def test_deleted_pod_whose_containers_were_killed_fails():
    whole = pod()
    whole["metadata"]["deletionTimestamp"] = text(20)
    found = status(whole, report(app=running()), job(JobState.CANCELLED, ended=at(30)))
    assert reported_by(found) == ("Failed", "CANCELLED", "terminated", "CANCELLED")


@pytest.mark.parametrize(
    ("reported", "slurm", "now", "expected"),
    [
        (report(app=running()), job(), 9, ("Running", None)),
        (report(app=running()), job(), 11, ("Running", "DeadlineExceeded")),
        (report("ended", app=ended(143, 12)), job(), 60, ("Failed", "DeadlineExceeded")),
        (report("ended", app=ended(0, 12)), job(JobState.CANCELLED), 60, ("Failed", "DeadlineExceeded")),
        (report("ended", app=ended(0, 5)), job(JobState.COMPLETED), 60, ("Succeeded", None)),
        (report(app=running()), job(JobState.TIMEOUT, ended=at(60)), 60, ("Failed", "DeadlineExceeded")),
        (report(app=running()), job(JobState.NODE_FAIL, ended=at(5)), 60, ("Failed", "NODE_FAIL")),
        (None, job(JobState.PENDING, reason="Priority"), 60, ("Pending", "Priority")),
    ],
)
def test_deadline_counts_from_the_start_of_the_job(reported, slurm, now, expected):
    found = status(pod(activeDeadlineSeconds=10), reported, slurm, now=now)
    assert (found["phase"], found.get("reason")) == expected


def test_message_ends_with_the_jobs_last_words():
    found = status(slurm=job(JobState.FAILED, log="slurmstepd: error: no such thing"))
    assert found["message"].endswith("(state FAILED, on c1): slurmstepd: error: no such thing")
