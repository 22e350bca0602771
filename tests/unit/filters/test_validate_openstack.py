"""Settings of OpenStack that validate refuses, offline."""

import pytest

from isthmus.filters.provider.inventory import cluster_inventory
from isthmus.filters.validate.check import cluster_problems, cluster_role_specs
from tests.repo.tree import ROOT

SPECS = cluster_role_specs(str(ROOT / "roles"))
NODES = {"ctl": {"group": "controller", "at": 10}, "c": {"group": "compute", "count": 2, "at": 21}}
MACHINES = {"ctl": {"flavor": "m1"}, "c": {"flavor": "m1"}}


def problems(nodes=NODES, more=None, **changed):
    settings = {"cidr": "192.0.2.0/24", "machines": MACHINES, **changed}
    found = cluster_inventory({"provider": "openstack", "nodes": nodes, "openstack": settings})
    shared = {"cluster_name": "hpc", "base_users": [], "network_pod_range": "10.64.0.0/11", **found["variables"]}
    shared |= more or {}
    hostvars = {
        host: {**shared, **given, "base_address": given["ansible_host"]} for host, given in found["hosts"].items()
    }
    groups = {"all": [*hostvars], **found["groups"]}
    return "\n".join(cluster_problems(hostvars, groups, SPECS, [str(ROOT / "inventories/common")]))


def test_right_settings_have_no_problem():
    assert problems() == ""


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"machines": {"ctl": {"flavor": "m1"}}}, "machines says nothing of c; add c: {flavor: NAME}"),
        ({"machines": {**MACHINES, "c": {"flavour": "m1"}}}, "did you mean 'flavor'"),
        ({"home_gib": -1}, "home_gib is -1"),
        ({"cidr": "10.64.1.0/24"}, "cidr 10.64.1.0/24 overlaps 10.64.0.0/11"),
        ({"clod": "mine"}, "unknown variable: 'provider_openstack_clod'; did you mean 'provider_openstack_cloud'"),
    ],
)
def test_bad_setting_is_refused_with_its_remedy(changed, message):
    assert message in problems(**changed)


def test_default_range_of_pods_counts_where_the_inventory_says_nothing():
    """Else playbooks/create.yml alone would refuse it, once the deployer has logged in to the cloud."""
    assert "cidr 10.64.1.0/24 overlaps 10.64.0.0/11" in problems(cidr="10.64.1.0/24", more={"network_pod_range": None})


CLOUD = {
    "group": "compute",
    "count": 2,
    "at": 40,
    "cloud": True,
    "vars": {"slurm_node": {"cpus": 2, "memory_mib": 900}},
}
COMING = {"machines": {**MACHINES, "b": {"flavor": "m1"}}, "power_clouds": "/root/clouds.yaml"}
JOIN = {"join_service": True, "slurm_partitions": [{"name": "batch", "nodes": ["c", "b"], "cloud_max": 1}]}


def coming(node=CLOUD, more=None, **changed):
    return problems({**NODES, "b": node}, {**JOIN, **(more or {})}, **{**COMING, **changed})


def test_nodes_that_come_and_go_have_no_problem():
    assert coming() == ""


def test_nodes_that_come_and_go_are_refused_where_nobody_starts_servers():
    node = {"base_address": "192.0.2.40", "slurm_node": CLOUD["vars"]["slurm_node"]}
    hosts = {"ctl": {"base_address": "192.0.2.10"}, "c1": {"base_address": "192.0.2.21"}, "b1": node}
    shared = {"cluster_name": "hpc", "base_users": [], "slurm_cloud_nodes": ["b1"], "join_service": True}
    groups = {"all": [*hosts], "controller": ["ctl"], "compute": ["c1"], "joining": ["b1"]}
    hostvars = {host: {**shared, **given} for host, given in hosts.items()}
    found = cluster_problems(hostvars, groups, SPECS, [str(ROOT / "inventories/common")])
    assert "no provider here starts servers for Slurm; empty it" in "\n".join(found)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"power_clouds": ""}, "the controller has no credentials; set power_clouds"),
        ({"more": {"join_service": False}}, "join_service is off; set join_service: true"),
        ({"node": {**CLOUD, "vars": {}}}, "nobody can ask it for its hardware; declare its slurm_node"),
        ({"node": {**CLOUD, "vars": {"slurm_node": {"cpus": 0, "memory_mib": 900}}}}, "slurm_node.cpus is 0"),
        ({"more": {"slurm_cloud_nodes": ["c"]}}, "unknown node or group of group joining in slurm_cloud_nodes"),
        ({"more": {"slurm_cloud_nodes": ["b[1-"]}}, "slurm_cloud_nodes: "),
        ({"more": {"slurm_cloud_resume_timeout_s": 5}}, "slurm_cloud_resume_timeout_s is 5; give a whole number"),
        ({"machines": MACHINES}, "machines says nothing of b"),
    ],
)
def test_bad_setting_of_nodes_that_come_and_go_is_refused(changed, message):
    assert message in coming(**changed)
