"""Rules and addresses of gateways: what is read, and what is refused before any change."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as some

from isthmus.filters.errors import InputError
from isthmus.filters.network.gateways import (
    Target,
    network_gateways,
    network_ingress_problem,
    network_outside_problem,
    span,
    target,
)
from isthmus.filters.validate.check import cluster_role_specs
from isthmus.filters.validate.layers.gateways import gateway_problems
from isthmus.filters.validate.site import Site
from isthmus.filters.validate.sources import Sources
from tests.repo import tree

USERS = ["alice", "bob", "john.doe"]
BASE = [{"name": name, "uid": 1001 + number} for number, name in enumerate(USERS)]
SPECS = cluster_role_specs(str(tree.ROOT / "roles"))
GROUPS = {
    "all": ["ctl", "g1", "g2", "c1"],
    "controller": ["ctl"],
    "etcd": ["ctl"],
    "network": ["ctl", "g1", "g2", "c1"],
    "gateways": ["g1", "g2"],
}
RIGHT = {
    "base_users": BASE,
    "network_ingress": [{"action": "allow", "to": "web.alice:443", "from": "192.0.2.0/24"}],
    "network_outside_addresses": [
        {"addresses": "198.51.100.10", "users": ["alice"]},
        {"addresses": "198.51.100.11-198.51.100.20"},
    ],
    "network_pod_range": "10.64.0.0/11",
}


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("web.alice:443", Target("alice", "web", 443, 443)),
        ("alice:8000-8100", Target("alice", "", 8000, 8100)),
        ("alice", Target("alice", "", 1, 65535)),
        ("web.alice", Target("alice", "web", 1, 65535)),
        ("*:443", Target("", "", 443, 443)),
        ("*", Target("", "", 1, 65535)),
        ("john.doe:80", Target("john.doe", "", 80, 80)),
        ("web.john.doe:80", Target("john.doe", "web", 80, 80)),
    ],
)
def test_target_is_read(text, wanted):
    assert target(text, USERS) == wanted


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("alic:443", "unknown user in network_ingress: 'alic'; did you mean 'alice'"),
        ("web.carol:443", "unknown user in network_ingress: 'carol'"),
        ("Web.alice:443", "'Web' cannot name a reservation"),
        ("alice:", "has no ports; write web.alice:443"),
        ("alice:0", "has no ports"),
        ("alice:443-80", "has no ports"),
        ("alice:65536", "has no ports"),
        ("", "unknown user"),
    ],
)
def test_wrong_target_is_refused_with_the_remedy(text, message):
    with pytest.raises(InputError) as caught:
        target(text, USERS)
    assert message in str(caught.value)


words = some.sampled_from(["alice", "web", ".", ":", "-", "*", "443", "0", " ", "é", "}", '"', "99999999"])


@given(some.lists(words, max_size=6).map("".join) | some.text(max_size=12))
def test_any_target_and_any_addresses_are_read_or_refused(text):
    for read in (lambda: target(text, USERS), lambda: span(text)):
        try:
            read()
        except InputError as error:
            assert error.remedy


@pytest.mark.parametrize("text", ["198.51.100.12-198.51.100.10", "10.0.0.0-10.0.1.0", "::1", "198.51.100.10/32", "x"])
def test_wrong_addresses_are_refused(text):
    with pytest.raises(InputError, match="network_outside_addresses"):
        span(text)


def test_unknown_users_are_refused():
    with pytest.raises(InputError, match="unknown user in network_outside_addresses: 'carol'"):
        network_gateways([], [{"addresses": "198.51.100.10", "users": ["carol"]}], BASE)


def problems(groups=None, **variables):
    hostvars = {host: {**RIGHT, **variables, "base_address": f"192.0.2.{n}"} for n, host in enumerate(GROUPS["all"], 1)}
    return list(gateway_problems(Site(hostvars, {**GROUPS, **(groups or {})}, SPECS, Sources([]))))


def test_right_site_has_no_problem():
    assert problems() == []
    assert problems({"gateways": []}, network_ingress=[], network_outside_addresses=[]) == []
    assert problems({"gateways": ["ctl"]}) == [], "one alone has nobody who would follow it"


@pytest.mark.parametrize(
    ("groups", "variables", "message"),
    [
        ({"gateways": []}, {}, "network_ingress is set, and group gateways has no host"),
        ({"gateways": []}, {"network_ingress": []}, "network_outside_addresses is set, and group gateways has no host"),
        ({"network": ["ctl", "g1"]}, {}, "gateway g2 is no member of group network"),
        ({"joining": ["g2"]}, {}, "gateway g2 is no member of group network that playbooks visit"),
        ({"etcd": ["g1"]}, {}, "gateway g1 is a member of etcd"),
        ({}, {"network_drivers": ["private", "flannel"]}, "pods of network flannel would go round them"),
        ({}, {"network_outside_addresses": []}, "network_ingress has rules, and there is no address"),
        ({}, {"network_ingress": [{"action": "allow", "to": "web.carol:443"}]}, "unknown user in network_ingress"),
        ({}, {"network_ingress": [{"action": "allow", "to": "alice:0"}]}, "has no ports"),
        ({}, {"network_ingress": [{"action": "allow", "to": "alice", "from": "all"}]}, "all is no IPv4 network"),
        ({}, {"network_outside_addresses": [{"addresses": "x"}]}, "'x' is no address"),
        ({}, {"network_outside_addresses": [{"addresses": "10.64.0.9"}]}, "10.64.0.9 overlaps network_pod_range"),
        ({}, {"network_outside_addresses": [{"addresses": "192.0.2.2-192.0.2.9"}]}, "overlaps g1 (192.0.2.2)"),
        ({}, {"network_outside_addresses": [{"addresses": "127.0.0.1"}]}, "overlaps addresses of no host"),
        (
            {},
            {"kubernetes_service_range": "10.97.0.0/16", "network_outside_addresses": [{"addresses": "10.97.0.9"}]},
            "overlaps kubernetes_service_range 10.97.0.0/16",
        ),
        # The defaults of those that the site does not set.
        ({}, {"network_outside_addresses": [{"addresses": "10.96.0.9"}]}, "overlaps kubernetes_service_range"),
        (
            {},
            {"network_pod_range": None, "network_outside_addresses": [{"addresses": "10.64.0.9"}]},
            "overlaps network_pod_range 10.64.0.0/11",
        ),
        (
            {},
            {
                "network_outside_addresses": [
                    {"addresses": "198.51.100.1-198.51.100.9"},
                    {"addresses": "198.51.100.9", "users": ["bob"]},
                ]
            },
            "198.51.100.9 overlaps another entry",
        ),
        (
            {},
            {"network_outside_addresses": [{"addresses": "198.51.100.1"}, {"addresses": "198.51.100.2"}]},
            "more than one entry without users",
        ),
        (
            {},
            {
                "network_outside_addresses": [
                    {"addresses": "198.51.100.1", "users": ["bob"]},
                    {"addresses": "198.51.100.2", "users": ["bob", "carol"]},
                ]
            },
            "names bob more than once",
        ),
        (
            {},
            {"network_outside_addresses": [{"addresses": "198.51.100.1", "users": ["carol"]}]},
            "unknown user in network_outside_addresses: 'carol'",
        ),
    ],
)
def test_wrong_site_is_refused_with_the_remedy(groups, variables, message):
    found = problems(groups, **variables)
    assert [each for each in found if message in each and "; " in each], found


def listed(*reserved):
    shown = {"reserved": [{"user": user, "name": name, "address": "10.64.0.9"} for user, name in reserved]}
    return {"stdout": json.dumps(shown), "stderr": "", "rc": 0}


RESERVING = [{"to": "bob:80"}, {"to": "web.alice:443"}]


def test_rule_about_a_reservation_that_nobody_has_is_refused():
    assert network_ingress_problem(RESERVING, BASE, listed(("alice", "web")), has_daemon=True) == ""
    problem = network_ingress_problem(RESERVING, BASE, listed(("bob", "web")), has_daemon=True)
    assert "isthmus network reserve web" in problem


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ({"rc": 1, "stdout": "", "stderr": "/run/isthmus/networkd.sock: Connection refused\n"}, "Connection refused; "),
        ({"rc": 2, "msg": "No such file: isthmus"}, "No such file: isthmus; "),
        ({"rc": 0, "stdout": "{}", "stderr": ""}, "nothing that can be read; "),
        ({"rc": 0, "stdout": '{"reserved": null}', "stderr": ""}, "nothing that can be read; "),
    ],
)
def test_daemon_that_does_not_answer_is_none_without_reservations(answer, why):
    problem = network_ingress_problem(RESERVING, BASE, answer, has_daemon=True)
    assert "web.alice is not known" in problem
    assert why in problem
    # A new site has no daemon, and rules about no reservation need none.
    assert network_ingress_problem(RESERVING, BASE, answer, has_daemon=False) == ""
    assert network_ingress_problem(RESERVING[:1], BASE, answer, has_daemon=True) == ""


def test_outside_address_is_one_of_the_gateways_networks():
    facts = {
        "interfaces": ["lo", "eth0", "eth-1", "il4096"],
        "lo": {"device": "lo", "ipv4": {"address": "127.0.0.1", "prefix": "8"}},
        "eth0": {
            "device": "eth0",
            "ipv4": {"address": "192.0.2.7", "prefix": "24"},
            "ipv4_secondaries": [{"address": "203.0.113.7", "prefix": "24"}],
        },
        "eth_1": {"device": "eth-1"},
        "il4096": {"device": "il4096", "ipv4": {"address": "10.64.0.1", "prefix": "24"}},
    }
    for right in ("192.0.2.100-192.0.2.102", "203.0.113.9"):
        assert network_outside_problem(facts, [{"addresses": right}]) == ""
    for wrong in ("192.0.2.250-192.0.3.4", "198.51.100.9", "10.64.0.9", "127.0.0.9"):
        assert "is in no network of this gateway's interfaces" in network_outside_problem(facts, [{"addresses": wrong}])
