"""Gateways of a site that has some: pods' way out and in, which rule lets in, and what a gateway's end costs.

The host of the tests is the outside: it must have an address in the network of the outside addresses.
"""

import json
import time
from ipaddress import IPv4Address

import pytest

from isthmus.model.network import Transport
from isthmus.network.gateways import settings as gateway_settings
from isthmus.network.gateways.exposing import is_permitted
from tests.support.clusters import jobs, outside
from tests.support.wait import wait
from tests.system.network.conftest import pods

NAME = "test-gateways"
FAILOVER_S = 5.0
# A busy machine's: between two connections of the probe that nothing keeps from it.
QUIET_S = 1.0


@pytest.fixture(scope="module")
def decided(controller):
    """What the site's admin decided; skips a site without gateways."""
    raw = json.loads(controller.output("cat /etc/isthmus/network.json")).get("gateways")
    if not raw:
        pytest.skip("each node is its own pods' way out here: group gateways is empty")
    return gateway_settings.read(raw)


@pytest.fixture(scope="module")
def gateways(decided, cluster):
    return {node.name: node for node in cluster.part("gateways")}


@pytest.fixture(scope="module")
def here(decided, gateways):
    """This host as the outside."""
    for node in gateways.values():
        if node.variables["address"] != node.variables["base_address"]:
            pytest.skip("this host is not in the gateways' network: ansible_host is not base_address")
    with outside.serving(outside.address_towards(next(iter(gateways.values())).variables["address"])) as found:
        yield found


@pytest.fixture(scope="module")
def seen_as(decided, controller, gateways):
    """User -> the addresses that the user's pods may be seen with."""

    def find(user):
        own = decided.of(int(controller.output(f"id -u {user}")))
        found = own.addresses if own else [node.variables["base_address"] for node in gateways.values()]
        return {str(address) for address in found}

    return find


@pytest.fixture(scope="module")
def permitted(decided, controller, user):
    """A port that a rule lets the first user open, and the address outside."""
    uid = int(controller.output(f"id -u {user}"))
    firsts = [rule.first for rule in decided.ingress if rule.allows and rule.protocol is Transport.TCP]
    port = next((port for port in firsts if is_permitted(decided, uid, NAME, Transport.TCP, port)), None)
    if port is None:
        pytest.skip(f"no rule of network_ingress lets {user} open a port")
    return str(decided.of(uid).first), port


def leading(node):
    """Return the gateway that leads out, as a node knows."""
    return json.loads(node.output("isthmus network status --json"))["gateway"]


def asks(probe, kind, here):
    return f"{probe} {kind} {here.address} {here.port}"


@pytest.mark.parametrize("kind", ["tcp", "udp"])
def test_pods_on_every_node_are_seen_with_their_users_address(serving, here, seen_as, probe, kind):
    for job in serving:
        for pod in job.values():
            _, seen = pod.run(asks(probe, kind, here)).split()
            assert seen in seen_as(pod.user)


def test_process_on_a_host_goes_out_by_the_host(here, computes, user, probe):
    host = computes[0]
    assert host.run_as(user, asks(probe, "tcp", here)).split()[1] == host.variables["base_address"]


def held(node):
    """Return the outside addresses that a host has."""
    shown = node.run("ip -4 -o address show dev isthmus-out").stdout
    return {IPv4Address(line.split()[3].split("/")[0]) for line in shown.splitlines()}


def test_one_gateway_has_the_outside_addresses(decided, gateways, controller):
    leads = leading(controller)
    has = {name: held(node) for name, node in gateways.items()}
    assert has == {name: set(decided.addresses) if name == leads else set() for name in gateways}


@pytest.fixture
def reserved(login, user):
    login.run_as(user, f"isthmus network reserve {NAME}")
    yield
    login.try_as(user, f"isthmus network unreserve {NAME}")


@pytest.fixture
def behind(reserved, login, controller, user, two_computes, probe, permitted):
    """Pods behind the reservation that serve the permitted port and the next one, on a node that does not lead out."""
    _, port = permitted
    leads = leading(controller)
    node = next(each for each in two_computes if each.name != leads)
    serve = f"{probe} serve {port} & {probe} serve {port + 1} & wait"
    options = f"--pod-network --mem=100 --nodelist={node.name}"
    job = jobs.submit(login, user, options, serve, f"ISTHMUS_RESERVATION={NAME}")
    try:
        jobs.wait_for_job(controller, job, "RUNNING")
        wait(lambda: jobs.written(login, user, job).count("ready"), lambda count: count == 2)
        yield pods(login, user, job, [node.name])[node.name]
    finally:
        jobs.cancel(controller, job)


def exposed(login, user):
    return json.loads(login.run_as(user, "isthmus network list --json")).get("exposed", [])


def traced(login, user, here, target, port):
    """Return a trace's verdict on what comes from outside, and whether a rule of the site lets it in."""
    shown = json.loads(login.run_as(user, f"isthmus network trace {here.address} {target} --port {port} --json"))
    return shown["verdict"], any(step["by"].startswith("network_ingress, rule ") for step in shown["steps"])


def test_port_is_reached_from_outside_between_expose_and_withdraw(behind, permitted, here, login, user):
    address, port = permitted
    assert here.asks(address, port, 1) == ""
    printed = login.run_as(user, f"isthmus network expose {NAME} {port}")
    assert f"{address}:{port}" in printed
    answer = wait(lambda: here.asks(address, port, 1), timeout_s=20)
    assert answer.split()[1] == here.address, "the server sees who asks"
    assert here.asks(address, port + 1, 1) == "", "no other port of the pod"
    assert traced(login, user, here, address, port) == ("passes", True)
    assert traced(login, user, here, address, port + 1) == ("refused", False)
    assert [(each["outside"], each["state"]) for each in exposed(login, user)] == [(f"{address}:{port}", "open")]
    login.run_as(user, f"isthmus network withdraw {NAME} {port}")
    wait(lambda: here.asks(address, port, 1), lambda seen: seen == "", timeout_s=20)
    assert exposed(login, user) == []
    assert traced(login, user, here, f"{NAME}.{user}", port) == ("refused", False)


def test_port_that_no_rule_lets_in_is_refused(reserved, login, controller, user, decided):
    uid = int(controller.output(f"id -u {user}"))
    port = next(port for port in range(65535, 0, -1) if not is_permitted(decided, uid, NAME, Transport.TCP, port))
    done = login.try_as(user, f"isthmus network expose {NAME} {port}")
    assert (done.rc != 0, f"{NAME}.{user}:{port}" in done.stderr, "network_ingress" in done.stderr) == (True,) * 3
    assert exposed(login, user) == []


def test_other_users_port_is_not_opened(reserved, login, other_user, permitted):
    _, port = permitted
    done = login.try_as(other_user, f"isthmus network expose {NAME} {port}")
    assert done.rc != 0
    assert "isthmus network reserve" in done.stderr or "network_ingress" in done.stderr


@pytest.fixture
def knocking(login, controller, user, two_computes, here, probe):
    """A pod of the first user's that goes out all the time, on a node that does not lead out."""
    leads = leading(controller)
    node = next(each for each in two_computes if each.name != leads)
    options = f"--pod-network --mem=100 --nodelist={node.name}"
    job = jobs.submit(login, user, options, f"{probe} knock {here.address} {here.port}")
    try:
        jobs.wait_for_job(controller, job, "RUNNING")
        begun = len(here.new_s)
        wait(lambda: len(here.new_s), lambda count: count > begun + 10)
        here.sources.clear()
        yield leads
    finally:
        jobs.cancel(controller, job)


@pytest.fixture
def stopped(knocking, gateways):
    """The gateway that leads out, whose daemon runs again afterwards."""
    if len(gateways) < 2:
        pytest.skip("the site has one gateway")
    yield gateways[knocking]
    gateways[knocking].output("systemctl start isthmus-networkd")


@pytest.mark.disruptive
def test_another_gateway_leads_out_within_5_s(stopped, controller, here, seen_as, user, decided):
    before_s = time.monotonic()
    stopped.output("systemctl kill --signal=KILL isthmus-networkd; systemctl stop isthmus-networkd")
    wait(lambda: leading(controller), lambda name: name != stopped.name and " " not in name, timeout_s=30)
    since_s = time.monotonic()
    wait(lambda: here.new_s[-1], lambda last_s: last_s > since_s + QUIET_S, timeout_s=30)
    assert here.gap_s(before_s) <= FAILOVER_S
    if seen_as(user) <= set(map(str, decided.addresses)):
        wait(lambda: here.kept_s[-1], lambda last_s: last_s > since_s, timeout_s=60)
    assert here.sources <= seen_as(user), "no packet from another address"


@pytest.mark.disruptive
def test_gateway_that_comes_back_takes_nothing_back(stopped, controller, here, seen_as, user):
    stopped.output("systemctl stop isthmus-networkd")
    follower = wait(lambda: leading(controller), lambda name: name != stopped.name and " " not in name, timeout_s=30)
    stopped.output("systemctl start isthmus-networkd")
    wait(lambda: leading(stopped), lambda name: name == follower, timeout_s=60)
    assert "isthmus-out" not in stopped.output("ip -o link")
    assert here.sources <= seen_as(user)
