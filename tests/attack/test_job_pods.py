"""What another user's job listens to and runs in its pod: from a job without one, from one's own pod, and by ssh."""

import shlex

import pytest

from tests.attack.test_login_pods import PORT, TCP, WAYS
from tests.support.clusters import jobs
from tests.support.clusters.sessions import ssh
from tests.support.wait import wait

pytestmark = pytest.mark.attack("-")
SERVE = f"""
import socket, time
kept = [socket.create_server(("0.0.0.0", {PORT})), socket.create_server(("127.0.0.1", {PORT + 1}))]
kept.append(socket.socket(socket.AF_UNIX)); kept[-1].bind("\\0victims-abstract"); kept[-1].listen()
print("ready", flush=True); time.sleep(600)
"""
# Without those by files: /tmp is the node's, with what its users let everybody open there.
TRIED = (
    "localhost",
    "every-address-at-localhost",
    "every-address-at-the-host",
    "address-of-the-pod",
    "abstract-socket",
    "environment",
    "descriptors",
    "memory",
    "trace",
    "signal",
    "namespace-by-process",
    "namespace-by-name",
    "root's-socket",
)
FROM = {"a job on the node": "--pod-network=none", "a pod": "--pod-network"}
PLACES = [*FROM, "ssh into a pod"]
REACHED = {"localhost", "every-address-at-localhost", "address-of-the-pod", "abstract-socket"}


def script(words):
    """Return a script that tries all ways and prints the names of those that lead somewhere."""
    lines = []
    for name in TRIED:
        command = WAYS[name]
        for word, value in words.items():
            command = command.replace(word, value)
        lines.append(f"{{ ( {command} ) > /dev/null 2>&1 < /dev/null && echo {shlex.quote(name)}; }} &")
    return "\n".join([*lines, "wait; echo tried"])


def serving(login, controller, user, node):
    """Begin a job that listens; return it."""
    where = f"--pod-network --mem=60 --nodelist={node.name}"
    job = jobs.submit(login, user, where, f"python3 -c {shlex.quote(SERVE)}")
    jobs.wait_for_job(controller, job, "RUNNING")
    wait(lambda: "ready" in jobs.written(login, user, job))
    return job


def step(job, command):
    return f"srun --overlap --jobid={job} --mem=20 sh -c {shlex.quote(command)}"


def address(login, user, job):
    return login.run_as(user, step(job, "hostname -I")).split()[0]


@pytest.fixture(scope="module")
def reached(login, controller, computes, attacker, victim):
    """Where from -> the ways that lead somewhere."""
    node, begun = computes[0], []
    try:
        begun.append(serving(login, controller, victim, node))
        words = {
            "PID": node.output(f"pgrep -u {victim} -f victims-abstract | tail -1"),
            "ADDRESS": address(login, victim, begun[0]),
            "HOST": node.variables["base_address"],
            "HIGH": str(PORT),
            "VICTIM": login.output(f"id -u {victim}"),
        }
        tries = script(words)
        found = {"own": login.try_as(victim, step(begun[0], tries)).stdout.split()}
        for place, option in FROM.items():
            where = f"{option} --mem=40 --nodelist={node.name}"
            with jobs.running(login, controller, attacker, where) as job:
                found[place] = login.try_as(attacker, step(job, tries)).stdout.split()
                if option == FROM["a pod"]:
                    found["ssh into a pod"] = ssh(login, attacker, tries, node=node.name).stdout.split()
        yield found
    finally:
        jobs.cancel(controller, *begun)


def test_ways_are_ways(reached):
    """Reach what is one's own in the pod of one's own job."""
    assert set(reached["own"]) >= REACHED


@pytest.mark.parametrize("place", PLACES)
def test_another_users_job(reached, place):
    """Reach what is in the pod of another's job: listeners, sockets, memory, namespaces, signals."""
    assert reached[place] == ["tried"]


@pytest.mark.full
def test_every_pair_of_users(login, controller, computes, cluster):
    """Reach the job's pod of each other user of the site, by its address and by localhost, with a pod of one's own."""
    node, begun = computes[0], {}
    try:
        begun = {user: serving(login, controller, user, node) for user in cluster.users}
        addresses = {user: address(login, user, job) for user, job in begun.items()}
        assert len(set(addresses.values())) == len(begun)
        led = []
        for user, job in begun.items():
            lines = [
                f"{{ {TCP.format(where, PORT)} 2>/dev/null && echo {whose}; }} &" for whose, where in addresses.items()
            ]
            lines.append("wait; grep -c victims-abstract /proc/net/unix")
            led.append((user, login.try_as(user, step(job, "\n".join(lines))).stdout.split()))
        assert led == [(user, [user, "1"]) for user in begun]
    finally:
        jobs.cancel(controller, *begun.values())
