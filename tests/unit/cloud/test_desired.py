"""Variables that are refused before the cloud is asked, and what the others become."""

import pytest
import yaml

from isthmus.cloud.desired import cloud_server, desired
from isthmus.cloud.userdata import Join
from isthmus.filters.errors import InputError
from isthmus.model.cloud import Kind
from tests.unit.cloud.given import NODES, VARIABLES, settings

MACHINES = VARIABLES["machines"]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"cluster": "x" * 41}, "cluster_name has 41 characters"),
        ({"machines": {**MACHINES, "g": {"flavor": "x"}}}, "unknown kind of node in machines: 'g'"),
        ({"machines": {"ctl": {"flavor": "x"}}}, "machines says nothing of login; add login: {flavor: NAME}"),
        ({"machines": {**MACHINES, "c": "small"}}, "machines.c is 'small'"),
        ({"machines": {**MACHINES, "c": {"flavour": "x"}}}, "did you mean 'flavor'"),
        ({"machines": {**MACHINES, "c": {"flavor": "x", "boot_gib": "20"}}}, "machines.c.boot_gib is '20'"),
        ({"home_gib": -1}, "home_gib is -1"),
        ({"cidr": "10.20.0.5/24"}, "cidr has '10.20.0.5/24', no IPv4 network"),
        ({"cidr": "10.64.0.0/24"}, "cidr 10.64.0.0/24 overlaps 10.64.0.0/11, a range of pods"),
        ({"login_sources": ["everywhere"]}, "login_sources has 'everywhere'"),
        ({"dns": ["dns.example.org"]}, "dns has 'dns.example.org'"),
        ({"nodes": {**NODES, "c": {"group": "compute", "count": 2}}}, "would have host parts 0 to 1"),
    ],
)
def test_bad_variable_is_refused_with_its_remedy(changed, message):
    with pytest.raises(InputError) as refused:
        settings(**changed)
    assert message in str(refused.value)


def by_kind(kind, **changed):
    return {one.name: one.settings for one in desired(settings(**changed)) if one.kind is kind}


def test_each_node_has_a_port_with_its_address_and_the_ranges_of_pods():
    ports = by_kind(Kind.PORT)
    assert {name: port["address"] for name, port in ports.items()} == {
        "hpc-ctl": "10.20.0.10",
        "hpc-login": "10.20.0.11",
        "hpc-c1": "10.20.0.21",
        "hpc-c2": "10.20.0.22",
    }
    assert {tuple(port["pairs"]) for port in ports.values()} == {("10.64.0.0/11",)}


def test_ssh_from_outside_reaches_login_nodes_alone():
    groups = {name: port["groups"] for name, port in by_kind(Kind.PORT).items()}
    assert groups == {
        "hpc-ctl": ["hpc-nodes"],
        "hpc-login": ["hpc-login", "hpc-nodes"],
        "hpc-c1": ["hpc-nodes"],
        "hpc-c2": ["hpc-nodes"],
    }
    nodes, login = (
        [rule for rule in by_kind(Kind.SECURITY_GROUP)[name]["rules"] if rule[0] == "ingress"]
        for name in ("hpc-nodes", "hpc-login")
    )
    assert nodes == [("ingress", "IPv4", "-", "-", "group hpc-nodes")]
    assert login == [("ingress", "IPv4", "tcp", "22", "0.0.0.0/0")]


def test_controller_is_the_entry_where_nobody_logs_in():
    nodes = {name: kind for name, kind in NODES.items() if name != "login"}
    machines = {name: machine for name, machine in MACHINES.items() if name != "login"}
    assert by_kind(Kind.FLOATING_IP, nodes=nodes, machines=machines)["hpc-ctl"]["port"] == "hpc-ctl"


def test_without_a_network_to_the_outside_there_is_no_router():
    assert by_kind(Kind.ROUTER, external="") == by_kind(Kind.FLOATING_IP, external="") == {}


def test_several_members_of_etcd_are_spread():
    assert by_kind(Kind.SERVER_GROUP) == {}
    spread = by_kind(Kind.SERVER_GROUP, spread=["ctl", "c1"])
    assert spread == {"hpc-spread": {"policy": "anti-affinity"}}
    servers = by_kind(Kind.SERVER, spread=["ctl", "c1"])
    assert [name for name, server in servers.items() if server["group"]] == ["hpc-ctl", "hpc-c1"]


def test_home_is_at_the_controller():
    servers = by_kind(Kind.SERVER, home_gib=50)
    assert [name for name, server in servers.items() if server["volume"]] == ["hpc-ctl"]
    assert "isthmus-home" in servers["hpc-ctl"]["user_data"]
    assert "isthmus-home" not in servers["hpc-c1"]["user_data"]


def test_uploaded_image_replaces_the_clouds_but_where_a_kind_has_its_own():
    machines = {**MACHINES, "login": {"flavor": "small", "image": "ubuntu"}}
    changed = {"image_file": "/node.qcow2", "image_digest": "ab" * 32, "machines": machines}
    images = {name: server["image"] for name, server in by_kind(Kind.SERVER, **changed).items()}
    assert images["hpc-login"] == "ubuntu"
    assert images["hpc-c1"] == f"isthmus-node-{'ab' * 8}"
    assert by_kind(Kind.IMAGE, **changed) == {images["hpc-c1"]: {"file": "/node.qcow2", "digest": "ab" * 32}}


CLOUD = {"nodes": {**NODES, "b": {"group": "compute", "count": 2, "at": 40, "cloud": True}}}
CLOUD["machines"] = {**MACHINES, "b": {"flavor": "big", "boot_gib": 9}}


def test_nodes_that_slurm_starts_have_ports_and_no_servers():
    assert by_kind(Kind.PORT, **CLOUD)["hpc-b2"]["address"] == "10.20.0.41"
    assert by_kind(Kind.SERVER, **CLOUD).keys() == by_kind(Kind.SERVER).keys()
    assert settings(**CLOUD).cloud_nodes == ["b1", "b2"]


def test_server_that_slurm_starts_is_of_its_kind_and_joins_by_itself():
    server = cloud_server(settings(**CLOUD), "b2", Join("10.20.0.10:7443", "ssh-ed25519 AAAA", "secret"))
    assert (server.name, server.settings["flavor"], server.settings["boot_gib"]) == ("hpc-b2", "big", 9)
    assert (server.settings["port"], server.settings["key"]) == ("hpc-b2", "")
    assert "TOKEN=secret" in yaml.safe_load(server.settings["user_data"])["write_files"][0]["content"]
    assert "secret" not in repr(Join("10.20.0.10:7443", "ssh-ed25519 AAAA", "secret"))


def test_servers_with_volumes_are_first_as_they_take_longest():
    nodes = {name: NODES[name] for name in ("c", "ctl", "login")}
    machines = {**VARIABLES["machines"], "login": {"flavor": "small", "boot_gib": 5}}
    wanted = desired(settings(nodes=nodes, machines=machines, home_gib=3))
    servers = [one.name for one in wanted if one.kind is Kind.SERVER]
    assert servers == ["hpc-ctl", "hpc-login", "hpc-c1", "hpc-c2"]
