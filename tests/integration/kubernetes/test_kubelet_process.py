"""The kubelet as a process of its own, killed at random moments; and a pod of it with its real supervisor."""

import json
import os
import random
import signal
import subprocess
import sys
import time

import pytest

from isthmus.images.known import Known
from isthmus.model.images import file_name, parse
from tests.support.fakes import slurm_programs
from tests.support.servers.api_server import NODE
from tests.support.servers.api_user import SOON
from tests.support.servers.kubelet_bed import DIGEST
from tests.support.wait import wait

IMAGE = "ctl:5000/web:1"
# As the control plane starts it, but for the place of the admin's file.
START = """
import os, pathlib
from isthmus.kubelet import main, settings
read = settings.read
settings.read = lambda environment: read(environment, pathlib.Path(os.environ["SETTINGS"]))
raise SystemExit(main.main())
"""


class Process:
    """A kubelet that may be killed."""

    def __init__(self, server, home):
        self.home, self.process = home, None
        cluster = home / ".isthmus/cluster"
        cluster.mkdir(parents=True)
        (cluster / "pki").symlink_to(server.pki)
        (cluster / "kubelet.kubeconfig").write_text(server.kubeconfig("kubelet").read_text())
        self.slurm = slurm_programs.write(home / "slurm")
        told = {"schema": 1, "driver": "none", "slurm_prefix": str(self.slurm)}
        (home / "kubernetes.json").write_text(json.dumps(told))
        self.environment = {
            **os.environ,
            "SETTINGS": str(home / "kubernetes.json"),
            "ISTHMUS_CLUSTER_DIR": str(cluster),
            "ISTHMUS_NODE_NAME": NODE,
            "ISTHMUS_ADDRESS": "127.0.0.1",
            "ISTHMUS_KUBELET_PORT": "0",
            "ISTHMUS_CHANNEL_PORT": "0",
            "SLURM_JOB_ID": "1",
            "SBATCH_ACCOUNT": "own",
            "ISTHMUS_RESERVATION": "kubernetes",
        }

    def start(self):
        with (self.home / "kubelet.log").open("ab") as log:
            self.process = subprocess.Popen([sys.executable, "-c", START], env=self.environment, stdout=log, stderr=log)

    def kill(self):
        self.process.kill()
        self.process.wait(60)

    def memory_mib(self):
        with open(f"/proc/{self.process.pid}/status") as file:
            return next(int(line.split()[1]) for line in file if line.startswith("VmHWM")) / 1024


def cache(home):
    """Put an image into the user's cache, as a pull leaves it."""
    folder = home / ".isthmus/images"
    (folder / ".config").mkdir(parents=True)
    name = DIGEST.replace(":", "-")
    (folder / file_name(DIGEST)).touch()
    (folder / ".config" / f"{name}.json").write_text(json.dumps({"Cmd": ["sh"]}))
    Known(folder).remember(parse(IMAGE), DIGEST)


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


def test_unusable_settings_are_told(kubelet):
    kubelet.kill()
    (kubelet.home / "kubernetes.json").write_text("{}")
    done = subprocess.run(
        [sys.executable, "-c", START], env=kubelet.environment, capture_output=True, text=True, check=False, timeout=120
    )
    assert (done.returncode, "playbooks/kubernetes.yml" in done.stderr) == (2, True)


def test_real_supervisor_takes_the_plan(bed, api):
    """No Apptainer is found here, so the container cannot start; the way to there and back is the real one."""
    processes = []

    def supervise(number, uid):
        command = [sys.executable, "-I", "-m", "isthmus.supervisor", str(bed.home / ".isthmus/pods" / uid)]
        environment = {"PATH": "/none", "HOME": str(bed.home), "SLURM_JOB_ID": number, "SLURMD_NODENAME": "c1"}
        processes.append(subprocess.Popen(command, env=environment))

    before, bed.slurm.started = bed.slurm.started, supervise
    try:
        pod = api.pod(container={"command": ["true"]})
        status = api.wait_phase(pod, "Failed")
        ended = status["containerStatuses"][0]["state"]["terminated"]
        assert (ended["reason"], ended["exitCode"]) == ("ContainerCannotRun", 128)
        assert "apptainer" in ended["message"]
    finally:
        bed.slurm.started = before
        for process in processes:
            process.wait(120)
