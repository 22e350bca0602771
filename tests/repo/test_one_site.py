"""One site on each provider: layers get the same hosts, groups and variables from each."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.repo import tree

SITE = {
    "cluster_name": "one",
    "base_users": [{"name": "ada", "uid": 2001}],
    "slurm_partitions": [{"name": "batch", "nodes": ["c"], "default": True}],
    "slurm_accounts": [{"name": "users"}],
    "network_drivers": ["bridge"],
}
NODE = {"slurm_node": {"features": ["fast"]}}
NODES = {
    "ctl": {"group": "controller", "at": 10},
    "login": {"group": "login", "count": 1, "at": 11},
    "c": {"group": "compute", "count": 2, "at": 21, "vars": NODE},
}
HEADS, COMPUTES = ["ctl", "login1"], ["c1", "c2"]
# The very same in an inventory of hosts, each with what its provider wants to know.
HOSTS = {"local": {"provider_local_index": 5}, "existing": {"ansible_host": "192.0.2.5"}}
CLOUDS = {
    "openstack": {"cidr": "10.20.0.0/24", "cloud": "mine"},
    "parallelcluster": {"region": "eu-central-1", "kinds": {"c": {"instance_types": ["c7i.large"], "min": 1}}},
}
# How a host is reached, and what its provider makes; no layer reads these.
OWN = ("ansible_", "provider_", "cluster_nodes")


@pytest.fixture(scope="module")
def sites(tmp_path_factory):
    """Provider -> what ansible-inventory lists."""
    return {name: listed(tmp_path_factory.mktemp(name), name) for name in (*HOSTS, *CLOUDS)}


def listed(folder: Path, provider: str):
    """Write the site for a provider and have Ansible read it."""
    source = (
        {"plugin": "cluster_nodes", "provider": provider, "nodes": NODES, provider: CLOUDS[provider]}
        if provider in CLOUDS
        else plain(provider)
    )
    (folder / "group_vars/all").mkdir(parents=True)
    (folder / "group_vars/all/site.yml").write_text(yaml.safe_dump(SITE))
    (folder / "group_vars/all/00_common").symlink_to(tree.ROOT / "inventories/common/group_vars/all")
    (folder / "groups.yml").symlink_to(tree.ROOT / "inventories/common/groups.yml")
    (folder / "cluster.yml").write_text(yaml.safe_dump(source))
    command = [Path(sys.executable).with_name("ansible-inventory"), "-i", folder, "--list"]
    return json.loads(subprocess.run(command, cwd=tree.ROOT, check=True, capture_output=True, text=True).stdout)


def plain(provider: str):
    own = HOSTS[provider]
    groups = {
        "controller": {"ctl": own},
        "login": {"login1": own},
        "compute": {node: own | NODE for node in COMPUTES},
        "c": dict.fromkeys(COMPUTES),
    }
    groups |= {"provider_local": dict.fromkeys((*HEADS, *COMPUTES))} if provider == "local" else {}
    return {group: {"hosts": hosts} for group, hosts in groups.items()}


def variables(site, host):
    """What layers get of a host."""
    return {name: value for name, value in site["_meta"]["hostvars"][host].items() if not name.startswith(OWN)}


def members(site, group):
    """The hosts of a group and of its children."""
    inside = site.get(group, {})
    return {*inside.get("hosts", ()), *(host for child in inside.get("children", ()) for host in members(site, child))}


@pytest.mark.parametrize("provider", [*HOSTS, *CLOUDS])
def test_hosts_have_the_same_variables_on_each_provider(sites, provider):
    site, first = sites[provider], sites["existing"]
    computes = COMPUTES if provider != "parallelcluster" else sorted(members(site, "c"))
    for host, same in zip([*HEADS, *computes], [*HEADS, *COMPUTES], strict=True):
        assert variables(site, host) == variables(first, same)
        assert SITE.items() <= variables(site, host).items()
    assert variables(site, computes[0]) | NODE == variables(site, computes[0])


@pytest.mark.parametrize("provider", ["local", "openstack"])
def test_groups_have_the_same_hosts_where_playbooks_visit_all(sites, provider):
    names = {*sites["existing"], *sites[provider]} - {"_meta", "all", f"provider_{provider}"}
    assert {group: members(sites[provider], group) for group in names} == {
        group: members(sites["existing"], group) for group in names
    }


def test_nodes_of_parallelcluster_are_in_the_layers_by_joining_alone(sites):
    site, first = sites["parallelcluster"], sites["existing"]
    for group in ("base", "slurm", "apptainer", "network", "kubernetes", "workloads", "monitoring", "etcd"):
        assert members(site, group) == members(first, group) - set(COMPUTES)
    assert members(site, "joining") == members(site, "c")
    assert len(members(site, "c")) == len(COMPUTES)
