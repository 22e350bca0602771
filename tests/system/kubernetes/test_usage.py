"""`isthmus usage`: what a pod had and used, when its job has ended."""

import json

import pytest

from tests.support.wait import wait


@pytest.fixture(autouse=True, scope="module")
def kept(controller):
    """Skip where Slurm's accounting does not keep which pod a job was."""
    if controller.run("scontrol show config | grep -q '^AccountingStoreFlags.*job_extra'").rc:
        pytest.skip("Slurm has no AccountingStoreFlags=job_extra")


def rows(space, options):
    reported = space.cluster.isthmus(f"usage --since now-1hours {options} --json")
    return {row["key"]: row for row in reported["rows"]}


def test_pod_is_accounted(space):
    space.ended("worker")
    name = f"{space.name}/worker"
    used = wait(lambda: rows(space, "--by pod").get(name), lambda row: row and row["used_cpu_hours"] > 0.5 / 3600)
    assert used["jobs"] == 1
    assert used["cpu_hours"] >= 2 / 3600
    assert used["memory_gib_hours"] > 0
    assert rows(space, "--by namespace")[space.name]["jobs"] == 1
    assert sum(row["jobs"] for row in rows(space, "--by account").values()) >= 1


def test_control_plane_is_accounted_as_such(space):
    assert rows(space, "")["(control plane)"]["jobs"] >= 1


def test_nobody_sees_anothers(space, login, other_user, controller):
    if controller.run("scontrol show config | grep -q '^PrivateData.*jobs'").rc:
        pytest.skip("Slurm shows everybody all jobs")
    reported = login.run_as(other_user, f"isthmus usage --user {space.cluster.user} --json")
    assert json.loads(reported)["rows"] == []


def test_a_wrong_time_is_an_error(login, user):
    refused = login.try_as(user, "isthmus usage --since yesterdayish")
    assert refused.rc == 1
    assert "yesterdayish" in refused.stderr or "time" in refused.stderr.lower()
