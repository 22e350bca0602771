"""The kubelet as a process of its own, killed at random moments; and a pod of it with its real supervisor."""

import random
import signal
import subprocess
import sys
import time

import pytest

from isthmus.supervisor.runtime import inside
from tests.support.fakes import slurm_programs
from tests.support.servers.api_user import SOON
from tests.support.servers.kubelet_process import IMAGE, START, Process, cache
from tests.support.wait import wait


@pytest.fixture
def kubelet(api_server, api, tmp_path):
    made = Process(api_server, tmp_path)
    cache(tmp_path)
    made.start()
    yield made
    api.clear()
    made.kill()


def test_kubelet_killed_at_any_moment_loses_and_doubles_no_pod(kubelet, api):
    draw = random.Random(7)  # noqa: S311
    pods = []
    for _ in range(5):
        pods += [api.pod(container={"image": IMAGE}) for _ in range(4)]
        time.sleep(draw.uniform(0, 2.5))
        kubelet.kill()
        kubelet.start()
    uids = {pod["metadata"]["uid"] for pod in pods}
    folders = [kubelet.home / ".isthmus/pods" / uid for uid in uids]
    wait(lambda: sum((folder / "job.json").exists() for folder in folders), lambda count: count == len(uids), **SOON)

    def living():
        found = [job["comment"] for job in slurm_programs.jobs(kubelet.slurm) if job["state"] == "RUNNING"]
        return sorted(found)

    wait(living, lambda found: found == sorted(uids), **SOON)
    assert kubelet.memory_mib() < 150


def test_sigterm_ends_the_kubelet_and_no_pod(kubelet, api):
    pod = api.pod(container={"image": IMAGE})
    wait(lambda: slurm_programs.jobs(kubelet.slurm), **SOON)
    kubelet.process.send_signal(signal.SIGTERM)
    assert kubelet.process.wait(120) == 0
    assert [job["state"] for job in slurm_programs.jobs(kubelet.slurm)] == ["RUNNING"]
    assert api.now(pod)


def test_unusable_settings_are_reported(kubelet):
    kubelet.kill()
    (kubelet.home / "kubernetes.json").write_text("{}")
    done = subprocess.run(
        [sys.executable, "-c", START], env=kubelet.environment, capture_output=True, text=True, check=False, timeout=120
    )
    assert (done.returncode, "playbooks/kubernetes.yml" in done.stderr) == (2, True)


@pytest.mark.skipif(inside.FOLDER.exists(), reason="this machine is a node")
def test_real_supervisor_takes_the_plan(bed, api):
    """Nothing of a node is here, so the container cannot start; the way to there and back is the real one."""
    processes = []

    def supervise(number, uid):
        command = [sys.executable, "-I", "-m", "isthmus.supervisor", str(bed.home / ".isthmus/pods" / uid)]
        environment = {"PATH": "/none", "HOME": str(bed.home), "SLURM_JOB_ID": number, "SLURMD_NODENAME": "c1"}
        processes.append(subprocess.Popen(command, env=environment))

    before, bed.slurm.started = bed.slurm.started, supervise
    try:
        pod = api.pod(container={"command": ["true"]})
        status = api.wait_phase(pod, "Failed")
        assert (status["reason"], "playbooks/network.yml" in status["message"]) == ("FailedMount", True)
    finally:
        bed.slurm.started = before
        for process in processes:
            process.wait(120)
