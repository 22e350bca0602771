"""Pods of two users on two nodes, each with a server, and ways to ask from any of them."""

from __future__ import annotations

import json
import uuid
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from tests.support.clusters import jobs
from tests.support.clusters.cluster import ROOT, Node
from tests.support.wait import wait

PORT = 8080


@dataclass(frozen=True)
class Pod:
    """A job's pod on one node."""

    login: Node
    user: str
    job: str
    node: str
    address: str

    def try_run(self, command):
        """Run a command in the pod; it may fail."""
        step = f"srun --overlap --jobid={self.job} --nodelist={self.node} --nodes=1 --ntasks=1 --mem=20"
        return self.login.try_as(self.user, f"{step} sh -c {json.dumps(command)}")

    def run(self, command):
        """Run a command in the pod that must succeed; return what it prints."""
        done = self.try_run(command)
        assert done.rc == 0, done.stdout + done.stderr
        return done.stdout.strip()


def pods(login, user, job, names):
    def listed():
        shown = json.loads(login.run_as(user, "isthmus network list --json"))
        return [each for each in shown["jobs"] if each["id"] == int(job) and all(each["addresses"])]

    # A job may run before the prologs of all its nodes have.
    (mine,) = wait(listed)
    by_node = dict(zip(mine["nodes"], mine["addresses"], strict=True))
    return {name: Pod(login, user, job, name, by_node[name]) for name in names}


@pytest.fixture(scope="module")
def login_pods(login):
    """A site whose sessions are in login pods."""
    if login.run("grep -q 'pam_isthmus.so login' /etc/pam.d/sshd").rc:
        pytest.skip("the site has no login pods")


@pytest.fixture(scope="module")
def probe(nodes):
    """The probe on every node; what runs it in a pod sees the node's files."""
    source = (ROOT / "tests/support/remote/probe.py").read_text()
    # Others may be tested at the same time, with one of their own.
    place = f"/usr/local/lib/isthmus-test-probe-{uuid.uuid4().hex[:8]}.py"
    for node in nodes.values():
        node.output(f"cat > {place} <<'END'\n{source}\nEND")
    yield f"python3 {place}"
    for node in nodes.values():
        node.output(f"rm -f {place}")


@contextmanager
def served(login, controller, users, network, names, probe):
    """Jobs that serve on these nodes, one of each user; node -> pod, of each job."""
    options = f"{network} --nodes={len(names)} --ntasks-per-node=1 --nodelist={','.join(names)} --mem=100"
    started = [(who, jobs.submit(login, who, options, f"srun --mem=50 {probe} serve {PORT}")) for who in users]
    try:
        for _, job in started:
            jobs.wait_for_job(controller, job, "RUNNING")
        for who, job in started:
            wait(lambda w=who, j=job: jobs.written(login, w, j).count("ready"), lambda count: count == len(names))
        yield [pods(login, who, job, names) for who, job in started]
    finally:
        jobs.cancel(controller, *(job for _, job in started))


@pytest.fixture(scope="module")
def shared(option, login, controller, user, other_user, two_computes, probe):
    """A job of each of two users, with the module's option, on both nodes; node -> pod that serves."""
    names = [node.name for node in two_computes]
    with served(login, controller, (user, other_user), option, names, probe) as found:
        yield found


@pytest.fixture(scope="module")
def serving(login, controller, user, other_user, two_computes, probe):
    """(user, node) -> pod that serves, one job of each user on both nodes; and a second job of the first user."""
    names = [node.name for node in two_computes]
    with served(login, controller, (user, user, other_user), "--pod-network", names, probe) as found:
        yield found
