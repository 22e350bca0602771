"""Kinds of nodes: the hosts and groups that follow, and what is refused."""

from ipaddress import IPv4Network

import pytest

from isthmus.filters.errors import InputError
from isthmus.filters.provider.nodes import node_kinds, provider_name

NODES = {
    "ctl": {"group": "controller", "at": 10},
    "login": {"group": "login", "at": 11},
    "c": {"group": "compute", "count": 2, "at": 21},
}
NETWORK = IPv4Network("10.20.0.0/24")


def test_kinds_become_hosts_groups_and_addresses():
    hosts = {
        node: (kind.groups, address) for kind in node_kinds(NODES) for node, address in kind.addresses(NETWORK).items()
    }
    assert hosts == {
        "ctl": (["controller"], "10.20.0.10"),
        "login": (["login"], "10.20.0.11"),
        "c1": (["compute", "c"], "10.20.0.21"),
        "c2": (["compute", "c"], "10.20.0.22"),
    }


def test_kind_that_grows_moves_no_other():
    grown = {**NODES, "c": {**NODES["c"], "count": 40}, "g": {"group": "compute", "count": 2, "at": 100}}
    before, after = ({kind.name: kind.addresses(NETWORK) for kind in node_kinds(nodes)} for nodes in (NODES, grown))
    assert all(before[name].items() <= after[name].items() for name in before)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"c": None}, "write e.g. c: {group: compute"),
        ({"c": {"grup": "compute"}}, "did you mean 'group'"),
        ({"c": {"group": "computes"}}, "did you mean 'compute'"),
        ({"c": {"group": "login", "count": 2}}, "no kind of node has group compute"),
        ({"c": {"group": "compute", "count": 0}}, "no kind of node has group compute"),
        ({"c": {"group": "compute", "count": "2"}}, "nodes.c.count is '2'; give a whole number"),
        ({"c": {"group": "compute", "count": True}}, "nodes.c.count is True"),
        ({"C_1": {"group": "compute"}}, "'C_1' is no name for a kind"),
        ({"c1": {"group": "compute"}}, "'c1' is no name for a kind"),
        (
            {"d": {"group": "compute", "count": 3, "at": 20}},
            "20 to 22, c begins at 21; let c begin at 23",
        ),
        ({"d": {"group": "compute", "count": 1, "vars": 3}}, "nodes.d.vars is 3"),
        ({"d": {"group": "compute", "count": 1, "cloud": "yes"}}, "nodes.d.cloud is 'yes'; write true or false"),
        ({"d": {"group": "login", "count": 1, "cloud": True}}, "only compute nodes with a `count` come and go"),
        ({"d": {"group": "compute", "cloud": True}}, "only compute nodes with a `count` come and go"),
        ({"c": {"group": "compute", "count": 2, "at": 21, "cloud": True}}, "add one without `cloud`"),
    ],
)
def test_bad_kind_is_refused_with_its_remedy(change, message):
    with pytest.raises(InputError) as refused:
        node_kinds({**NODES, **change})
    assert message in str(refused.value)


@pytest.mark.parametrize("at", [0, 1, 254])
def test_addresses_outside_the_subnet_are_refused(at):
    kind = node_kinds({**NODES, "c": {"group": "compute", "count": 2, "at": at}})[-1]
    with pytest.raises(InputError, match=r"let `at` and `count` stay within 4 and 254"):
        kind.addresses(NETWORK)


@pytest.mark.parametrize(
    ("groups", "name"),
    [
        ({"all": ["a"], "compute": ["a"]}, ""),
        ({"provider_local": ["a"], "provider_openstack": []}, "local"),
        ({"provider_openstack": ["a"]}, "openstack"),
    ],
)
def test_provider_is_that_of_the_group_with_hosts(groups, name):
    assert provider_name(groups) == name


def test_two_providers_are_refused():
    with pytest.raises(InputError, match="give each provider its own inventory"):
        provider_name({"provider_local": ["a"], "provider_openstack": ["b"]})
