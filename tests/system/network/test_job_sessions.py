"""ssh to a compute node goes on in the pod of the job that it is adopted by."""

from contextlib import ExitStack

import pytest

from tests.support.clusters import jobs
from tests.support.clusters.sessions import inside, ssh
from tests.support.wait import wait

CGROUP = "grep -o 'job_[0-9]*/step_extern' /proc/self/cgroup | head -1"
LOOK = f"readlink /proc/self/ns/net; (cd /sys/class/net && echo *); {CGROUP}"


@pytest.fixture(autouse=True, scope="module")
def sessions(computes, login, user):
    if computes[0].run("grep -q 'pam_isthmus.so job' /etc/pam.d/sshd").rc:
        pytest.skip("sessions on the site's compute nodes stay in the node's network")
    wait(lambda: login.run_as(user, "squeue --me --noheader --states=RUNNING,COMPLETING"), lambda shown: shown == "")


def netns(login, user, job, node):
    command = f"srun --overlap --jobid={job} --mem=20 --nodelist={node.name} readlink /proc/self/ns/net"
    return login.run_as(user, command)


def test_session_is_in_the_newest_jobs_pod(login, controller, user, computes):
    node = computes[0]
    options = f"--pod-network --mem=50 --nodelist={node.name}"
    serve = "python3 -m http.server -b 127.0.0.1 8888"
    ask = "python3 -c 'import urllib.request as u; print(u.urlopen(\"http://127.0.0.1:8888\", timeout=5).status)'"
    with ExitStack() as stack:
        older = stack.enter_context(jobs.running(login, controller, user, options, "echo began; sleep 300"))
        # pam_slurm_adopt compares whole seconds of the jobs' control groups.
        wait(lambda: jobs.written(login, user, older))
        began = node.output("date +%s")
        wait(lambda: node.output("date +%s"), lambda now: now != began)
        newest = stack.enter_context(jobs.running(login, controller, user, options, serve))
        there, links, adopted = inside(login, user, LOOK, node=node.name).splitlines()
        assert adopted == f"job_{newest}/step_extern"
        assert there == netns(login, user, newest, node)
        assert there != node.output("readlink /proc/1/ns/net")
        assert sorted(links.split()) == ["eth0", "lo"]
        assert wait(lambda: ssh(login, user, ask, node=node.name).stdout.strip()) == "200"
        assert "nameserver 10." in inside(login, user, "cat /etc/resolv.conf", node=node.name)


def test_shell_is_in_the_job_that_is_named(login, controller, user, computes):
    node = computes[0]
    options = f"--pod-network --mem=50 --nodelist={node.name}"
    with jobs.running(login, controller, user, options) as first, jobs.running(login, controller, user, options):
        for name in (first, f"{first}.{node.name}"):
            shown = login.run_as(user, f"isthmus shell {name} -- sh -c 'readlink /proc/self/ns/net; hostname; umask'")
            assert shown.split()[:2] == [netns(login, user, first, node), node.name]
        refused = login.try_as(user, f"isthmus shell {first}.nowhere -- true || exit 1")
        assert refused.rc == 1


def test_nobody_gets_a_shell_in_anothers_job(login, controller, user, other_user, computes):
    with jobs.running(login, controller, user, f"--pod-network --mem=50 --nodelist={computes[0].name}") as job:
        assert login.try_as(other_user, f"isthmus shell {job} -- true || exit 1").rc == 1


def test_session_of_a_job_without_a_network_stays_on_the_node(login, controller, user, computes):
    node = computes[0]
    # Said, since a site may give every job a network.
    with jobs.running(login, controller, user, f"--pod-network=none --mem=50 --nodelist={node.name}") as job:
        there, _, adopted = inside(login, user, LOOK, node=node.name).splitlines()
        assert there == node.output("readlink /proc/1/ns/net")
        assert adopted == f"job_{job}/step_extern"


def test_session_ends_with_its_job(login, controller, user, computes):
    node = computes[0]
    with jobs.running(login, controller, user, f"--pod-network --mem=50 --nodelist={node.name}"):
        inside(login, user, "nohup sleep 98764 >/dev/null 2>&1 &", node=node.name)
        assert node.output("pgrep -f '^sleep 98764'")
    wait(lambda: node.run("pgrep -f '^sleep 98764'").rc != 0)


@pytest.mark.disruptive
def test_without_the_daemon_a_session_is_refused_where_the_job_has_a_pod(login, controller, user, computes):
    node, options = computes[0], f"--pod-network --mem=50 --nodelist={computes[0].name}"
    with jobs.running(login, controller, user, options, "echo began; sleep 300") as job:
        # Its task asks the daemon, too, and a job that ends takes the session along.
        wait(lambda: jobs.written(login, user, job))
        node.output("systemctl stop isthmus-networkd")
        try:
            refused = login.try_as(user, f"ssh -o BatchMode=yes {node.name} id || exit 1")
            assert refused.rc == 1
            assert "isthmus: you cannot log in here now: the network daemon" in refused.stderr
        finally:
            node.output("systemctl start isthmus-networkd")
