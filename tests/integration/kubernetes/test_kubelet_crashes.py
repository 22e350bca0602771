"""The kubelet, or Slurm, goes away at the wrong moment: no pod is lost, run twice, or left behind."""

import json

import pytest

from isthmus.model.pod_job import JobState
from tests.support.servers.api_user import SOON
from tests.support.wait import wait


@pytest.fixture(autouse=True)
def well(bed):
    yield
    bed.slurm.silent = bed.slurm.drops_answer = False


def jobs(bed, pod):
    return bed.slurm.of(pod["metadata"]["uid"])


def test_running_pod_survives_the_kubelet(bed, api):
    pod = api.pod()
    api.wait_phase(pod, "Running")
    bed.kill()
    bed.start()
    bed.exit(pod)
    api.wait_phase(pod, "Succeeded")
    assert (len(jobs(bed, pod)), len(bed.supervisor(pod).plans)) == (1, 1)


def test_end_while_the_kubelet_is_away_is_reported(bed, api):
    pod = api.pod()
    api.wait_phase(pod, "Running")
    bed.kill()
    bed.exit(pod, 4)
    bed.start()
    status = api.wait_phase(pod, "Failed")
    assert status["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 4


def test_job_without_its_number_is_found(bed, api):
    """As after a crash between sbatch and job.json."""
    pod = api.pod()
    api.wait_phase(pod, "Running")
    bed.kill()
    (bed.folder(pod) / "job.json").unlink()
    bed.start()
    wait(lambda: (bed.folder(pod) / "job.json").exists(), **SOON)
    assert json.loads((bed.folder(pod) / "job.json").read_text())["job"] == jobs(bed, pod)[0].id
    bed.exit(pod)
    api.wait_phase(pod, "Succeeded")
    assert len(jobs(bed, pod)) == 1


def test_accepted_pod_without_a_job_is_submitted(bed, api):
    """As after a crash just before sbatch."""
    pod = api.pod(container={"image": "missing"})
    api.wait_waiting(pod, "ImagePullBackOff")
    bed.kill()
    bed.folder(pod).mkdir(mode=0o700)
    (bed.folder(pod) / "pod.json").write_text(json.dumps(pod))
    path = f"/api/v1/namespaces/default/pods/{pod['metadata']['name']}"
    api.patch(path, {"spec": {"containers": [{"name": "main", "image": "web"}]}}, "strategic-merge-patch")
    bed.start()
    api.wait_phase(pod, "Running")
    assert len(jobs(bed, pod)) == 1


def test_submission_without_an_answer_is_not_repeated(bed, api):
    bed.slurm.drops_answer = True
    pod = api.pod()
    api.wait_phase(pod, "Running")
    assert len(jobs(bed, pod)) == 1


@pytest.mark.parametrize("speaks", [True, False], ids=["with supervisor", "without"])
def test_second_job_of_a_pod_gets_no_plan_and_ends(bed, api, speaks, monkeypatch):
    pod = api.pod()
    api.wait_phase(pod, "Running")
    monkeypatch.setattr(bed, "autorun", speaks)
    words = [f"--comment={pod['metadata']['uid']}"]
    second = bed.slurm.submit(words, "#!/bin/sh\n")
    wait(lambda: bed.slurm.jobs[second].job.state, lambda state: state is JobState.CANCELLED, **SOON)
    assert len(bed.supervisor(pod).plans) == 1
    assert api.status(pod)["phase"] == "Running"


def test_pod_that_says_it_is_another_job_has_nothing_cancelled(bed, api, monkeypatch, caplog):
    pod = api.pod()
    api.wait_phase(pod, "Running")
    monkeypatch.setattr(bed, "autorun", False)
    stranger = bed.slurm.submit(["--comment=no pod"], "#!/bin/sh\n")
    mine = bed.supervisor(pod)
    own, mine.job = mine.job, stranger
    bed.hang_up(pod)
    wait(lambda: f"job {stranger} is not that of pod" in caplog.text, **SOON)
    mine.job = own
    # It is let in again, and stopped; whatever the kubelet wanted to cancel it has cancelled by then.
    api.delete(pod)
    api.wait_gone(pod)
    assert bed.slurm.jobs[stranger].job.state is JobState.RUNNING


@pytest.mark.parametrize("spoiled", [7, {"state": "terminated", "exit_code": []}, {"finished": 10**9}])
def test_pod_whose_report_is_none_can_be_deleted(bed, api, spoiled):
    pod = api.pod()
    api.wait_phase(pod, "Running")
    bed.say(pod, "ended", {"main": spoiled})
    api.delete(pod, grace=1)
    api.wait_gone(pod)
    assert jobs(bed, pod)[0].state.ended


def test_silent_slurm_ends_no_pod(bed, api):
    pod = api.pod()
    api.wait_phase(pod, "Running")
    bed.slurm.silent = True
    late, asked = api.pod(), bed.slurm.questions
    wait(lambda: bed.slurm.questions > asked + 2, **SOON)
    assert (api.status(pod)["phase"], api.status(late)["phase"]) == ("Running", "Pending")
    bed.slurm.silent = False
    api.wait_phase(late, "Running")
    assert len(jobs(bed, late)) == 1


def test_pod_deleted_while_the_kubelet_is_away_goes(bed, api):
    pod = api.pod()
    api.wait_phase(pod, "Running")
    bed.kill()
    api.delete(pod, grace=0)
    api.wait_gone(pod)
    bed.start()
    wait(lambda: jobs(bed, pod)[0].state.ended, **SOON)
    wait(lambda: not bed.folder(pod).exists(), **SOON)


def test_pod_being_deleted_when_the_kubelet_dies_goes(bed, api):
    pod = api.pod()
    api.wait_phase(pod, "Running")
    bed.kill()
    api.delete(pod, grace=30)
    bed.start()
    api.wait_gone(pod)
    wait(lambda: not bed.folder(pod).exists(), **SOON)
    assert len(bed.supervisor(pod).stops) == 1


def test_pod_whose_supervisor_is_silent_is_cancelled(bed, api):
    bed.autorun = False
    try:
        pod = api.pod()
        wait(lambda: jobs(bed, pod), **SOON)
        api.delete(pod, grace=1)
        api.wait_gone(pod)
        wait(lambda: jobs(bed, pod)[0].state, lambda state: state is JobState.CANCELLED, **SOON)
    finally:
        bed.autorun = True
