"""What several kinds of integration tests start once."""

import os
import shutil
import signal
import subprocess
import uuid
from contextlib import suppress
from ipaddress import IPv4Network
from pathlib import Path

import pytest

from isthmus.clients.etcd.store import Etcd
from isthmus.clients.etcd.wire import prefix_range
from isthmus.model.network import Ranges
from isthmus.network.state.keys import Keys
from isthmus.network.state.store import Store
from tests.support.fakes.kubelet import Kubelet
from tests.support.files import certificates
from tests.support.files.passable import passable
from tests.support.servers import apptainer_host
from tests.support.servers.etcd import PREFIX, running
from tests.support.wait import wait

# Processes are found by it on the whole machine, so each of pytest's workers has its own.
POD_UID = str(uuid.uuid4())


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """An etcd with TLS and users."""
    with running(tmp_path_factory.mktemp("etcd")) as cluster:
        yield cluster


@pytest.fixture
def etcd(cluster):
    """A client of it, with nothing of the pod networks there yet."""
    etcd = Etcd(cluster.access())
    etcd.call("kv/deleterange", prefix_range(PREFIX))
    yield etcd
    etcd.close()


@pytest.fixture
def store(etcd):
    """The pod networks' part of it."""
    return Store(etcd, Keys("test"), Ranges(IPv4Network("10.64.0.0/16")))


@pytest.fixture(scope="session")
def host(tmp_path_factory):
    """A node with Apptainer and an ordinary user."""
    folder = passable(tmp_path_factory.mktemp("host"))
    made = apptainer_host.start(folder, f"isthmus-test-{os.getpid()}")
    try:
        yield made
    finally:
        apptainer_host.stop(made)


class Supervised:
    """A pod's folder, a supervisor in it, and the kubelet it talks to."""

    def __init__(self, host, user):
        self.host, self.user = host, user
        self.folder = host.shared / user / POD_UID
        self._lay()
        self.kubelet = Kubelet(self.folder / "credential", self.folder)
        self.log = (self.folder / "slurm.log").open("wb")
        self.process = None

    def _lay(self):
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        certificates.write_channel(self.folder / "credential", POD_UID)

    def launch(self):
        """Start the supervisor, as its user."""
        self.host.run("chown", "-R", f"{self.user}:", self.folder.parent)
        argv = ["/usr/bin/python3", "-I", "-m", "isthmus.supervisor", self.folder]
        environment = {"TMPDIR": "/scratch", "SLURM_JOB_ID": "77", "SLURMD_NODENAME": "c1"}
        command = self.host.command(*argv, user=self.user, **environment)
        self.process = subprocess.Popen(command, stdout=self.log, stderr=self.log)
        return self

    def run(self, plan):
        """Start it with a plan; images are the host's busybox."""
        for container in (*plan["init"], *plan["containers"]):
            container["image"] = container["image"] or str(self.host.image)
        self.launch()
        self.kubelet.start({**plan, "uid": POD_UID})
        return self.kubelet

    def processes(self, word=b""):
        """The pids of those with a word on their command line, as the machine sees them."""
        found = []
        for path in Path("/proc").iterdir():
            # Also a process that goes meanwhile: ESRCH.
            with suppress(OSError):
                words = (path / "cmdline").read_bytes() if path.name.isdigit() else b""
                if (word or POD_UID.encode()) in words and not words.startswith(b"podman"):
                    found.append(int(path.name))
        return found

    def supervisor(self):
        """The pid of the supervisor itself."""
        for pid in self.processes():
            # Also a process that goes meanwhile: ENOENT, or ESRCH.
            with suppress(OSError):
                words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
                parent = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1]
                if b"isthmus.supervisor" in words and int(parent) not in self.processes():
                    return pid
        raise AssertionError("no supervisor runs")

    def below(self, pid):
        """A process and all that descend from it."""
        found = [pid]
        for each in found:
            with suppress(OSError):
                for task in Path(f"/proc/{each}/task").iterdir():
                    with suppress(OSError):
                        found += map(int, (task / "children").read_text().split())
        return found

    def descriptors(self):
        """What the supervisor has open."""
        found = set()
        for each in Path(f"/proc/{self.supervisor()}/fd").iterdir():
            with suppress(FileNotFoundError):
                found.add(os.readlink(each))
        return found

    def exit_status(self, timeout_s=60):
        return self.process.wait(timeout_s)

    def end(self):
        """Whatever the test did: nothing of it stays."""
        if self.process and self.process.poll() is None:
            with suppress(AssertionError, ProcessLookupError):
                os.kill(self.supervisor(), signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(30)
        self.kubelet.leave()
        # The next pod's folder is the same one, and a process that still goes may write there.
        wait(self._kill, lambda left: not left, interval_s=0.1)
        self.log.close()
        print((self.folder / "slurm.log").read_text())

    def _kill(self):
        found = self.processes()
        for pid in found:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return found


@pytest.fixture
def supervised(host):
    """Makes pods with a supervisor each; they end with the test."""
    made = []

    def make(user=apptainer_host.USER):
        made.append(Supervised(host, user))
        return made[-1]

    yield make
    for each in made:
        each.end()


@pytest.fixture
def pod(supervised):
    """A pod of the ordinary user."""
    return supervised()
