"""`isthmus network trace` says what really happens."""

import json

import pytest

from tests.system.network.conftest import PORT


def verdict(reported):
    return json.loads(reported)["verdict"]


def reported_by(pod, target, port):
    """What the pod's own user sees, on the login node."""
    point = f"{pod.job}:{pod.node}"
    return pod.login.run_as(pod.user, f"isthmus network trace {point} {target} --port {port} --json")


@pytest.fixture(scope="module")
def targets(serving, two_computes, controller, user, other_user):
    """(address, port): pods of each job, legs of both users, Slurm, sshd and etcd of hosts, metadata."""
    known = json.loads(controller.output("isthmus network list --json"))["users"]
    # Those of others may come and go meanwhile.
    own = "|".join(f"il{each['vni']}" for each in known if each["user"] in (user, other_user))
    leg = f"ip -4 -o address | awk '$2 ~ /^({own})$/ {{print $4}}' | cut -d/ -f1"
    legs = [address for node in two_computes for address in node.output(leg).split()]
    hosts = [node.variables["base_address"] for node in (*two_computes, controller)]
    return [
        *((pod.address, PORT) for job in serving for pod in job.values()),
        *((leg, 22) for leg in legs),
        *((host, port) for host in hosts for port in (22, 2379)),
        (two_computes[1].variables["base_address"], 6818),
        ("169.254.169.254", 80),
    ]


def test_verdict_for_a_pod_is_what_happens(serving, two_computes, probe, targets):
    pod = serving[0][two_computes[0].name]
    reached = {target: pod.try_run(f"{probe} connect {target[0]} {target[1]}").rc == 0 for target in targets}
    said = {target: verdict(reported_by(pod, *target)) == "passes" for target in targets}
    # The metadata address, and etcd where there is none, have no listener that could answer.
    wrong = [target for target in targets if said[target] != reached[target]]
    assert wrong == []
    assert {True, False} == {*said.values()}


def test_verdict_for_processes_of_a_host_is_what_happens(serving, two_computes, user, other_user, probe):
    host = two_computes[0]
    for job in serving:
        for pod in job.values():
            for who in (user, other_user):
                said = verdict(
                    host.output(f"isthmus network trace {who}@{host.name} {pod.address} --port {PORT} --json")
                )
                reached = host.try_as(who, f"{probe} tcp {pod.address} {PORT}").rc == 0
                assert (said == "passes") == reached, f"{who} -> {pod}: {said}"


def test_refusal_names_the_rule(serving, two_computes, controller):
    pod = serving[0][two_computes[0].name]
    shown = pod.login.run_as(
        pod.user, f"isthmus network trace {pod.job} {controller.variables['base_address']} --port 22"
    )
    assert "network_host_ports" in shown


def test_user_learns_nothing_of_others(serving, two_computes):
    mine, _, theirs = (job[two_computes[0].name] for job in serving)
    there = mine.login.try_as(mine.user, f"isthmus network trace {mine.job} {theirs.job}")
    nowhere = mine.login.try_as(mine.user, f"isthmus network trace {mine.job} 99999999")
    assert there.rc == nowhere.rc == 1
    assert there.stderr.replace(theirs.job, "N") == nowhere.stderr.replace("99999999", "N")
    assert theirs.user not in reported_by(mine, theirs.address, PORT)
    assert mine.login.try_as(mine.user, f"isthmus network trace {theirs.job} {mine.job}").rc == 1
