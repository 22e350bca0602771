"""IPv6 of private networks on a site that asks for it."""

import json

import pytest

from tests.support.clusters import jobs
from tests.support.wait import wait
from tests.system.network.conftest import pods

PORT = 8099
CONNECT = "import socket; socket.create_connection(({!r}, {}), 3)"


def ask(address):
    """Return the command that connects to a server."""
    return f"python3 -c {json.dumps(CONNECT.format(str(address), PORT))}"


@pytest.fixture(scope="module", autouse=True)
def asked_for(controller):
    """The site has it."""
    if not controller.variables["network_ipv6_range"]:
        pytest.skip("pods of this site have no IPv6: network_ipv6_range")


@pytest.fixture(scope="module")
def served(login, controller, user, other_user, two_computes):
    """Of a job of each user: its pods by node, and their IPv6 addresses."""
    names = [node.name for node in two_computes]
    options = f"--pod-network --nodes=2 --ntasks-per-node=1 --nodelist={','.join(names)} --mem=100"
    serve = f"srun --mem=50 python3 -m http.server --bind :: {PORT}"
    started = [(each, jobs.submit(login, each, options, serve)) for each in (user, other_user)]
    try:
        for _, job in started:
            jobs.wait_for_job(controller, job, "RUNNING")
        made = [pods(login, each, job, names) for each, job in started]
        listed = {each["id"]: each for each in json.loads(controller.output("isthmus network list --json"))["jobs"]}
        shown = [listed[int(job)] for _, job in started]
        found = [
            (each, dict(zip(job["nodes"], job["ipv6"], strict=True))) for each, job in zip(made, shown, strict=True)
        ]
        for own, addresses in found:
            for node in names:
                command = ask(addresses[node])
                wait(lambda pod=own[node], asked=command: pod.try_run(asked).rc, lambda status: status == 0)
        yield found
    finally:
        jobs.cancel(controller, *(job for _, job in started))


def test_pods_of_a_user_reach_one_another_and_others_do_not(served, two_computes):
    near, far = (node.name for node in two_computes)
    (mine, own), (_, theirs) = served
    assert mine[near].try_run(ask(own[far])).rc == 0
    for node in (near, far):
        assert mine[near].try_run(ask(theirs[node])).rc != 0


def test_host_process_reaches_pods_of_its_own_user_alone(served, two_computes, user, other_user):
    host, far = two_computes
    address = served[0][1][far.name]
    assert host.try_as(user, ask(address)).rc == 0
    assert host.try_as(other_user, ask(address)).rc != 0


def test_name_has_both_addresses(served, two_computes):
    near, far = (node.name for node in two_computes)
    mine, own = served[0]
    found = mine[near].run(f"getent ahosts pod1.{mine[far].job}")
    assert mine[far].address in found
    assert own[far] in found


def test_nothing_leads_outside(served, two_computes):
    mine, _ = served[0]
    pod = mine[two_computes[0].name]
    assert "unreachable" in pod.try_run(ask("2001:db8::1")).stderr
    assert "fe80" not in pod.run("ip -6 address")
