"""The inventory of a site that a provider makes."""

import pytest

from isthmus.filters.errors import InputError
from isthmus.filters.provider.inventory import cluster_inventory

NODES = {
    "ctl": {"group": "controller", "at": 10},
    "login": {"group": "login", "at": 11},
    "c": {"group": "compute", "count": 2, "at": 21, "vars": {"slurm_node": {"cpus": 4}}},
}
OPENSTACK = {"provider": "openstack", "nodes": NODES, "openstack": {"cidr": "10.20.0.0/24", "cloud": "mine"}}
CLOUD = {"group": "compute", "count": 2, "at": 40, "cloud": True}
PARALLELCLUSTER = {"provider": "parallelcluster", "nodes": NODES, "parallelcluster": {"kinds": {"c": {"min": 1}}}}


def test_hosts_have_their_addresses_and_variables():
    found = cluster_inventory(OPENSTACK)
    assert found["hosts"]["c2"] == {"ansible_host": "10.20.0.22", "slurm_node": {"cpus": 4}}
    assert found["variables"] == {
        "cluster_nodes": NODES,
        "provider_openstack_cidr": "10.20.0.0/24",
        "provider_openstack_cloud": "mine",
    }


def test_nodes_that_come_and_go_are_joined_and_visited_by_no_playbook():
    found = cluster_inventory({**OPENSTACK, "nodes": {**NODES, "b": CLOUD}})
    assert found["groups"]["joining"] == found["groups"]["b"] == ["b1", "b2"]
    assert found["groups"]["compute"] == ["c1", "c2"]
    assert found["groups"]["provider_openstack"] == ["ctl", "login", "c1", "c2", "b1", "b2"]
    assert found["variables"]["slurm_cloud_nodes"] == ["b"]
    assert found["hosts"]["b2"] == {"ansible_host": "10.20.0.41"}


def test_such_nodes_are_refused_where_the_provider_has_its_own():
    with pytest.raises(InputError, match=r"nodes.b.cloud is for OpenStack; give counts under parallelcluster.kinds"):
        cluster_inventory({**PARALLELCLUSTER, "nodes": {**NODES, "b": CLOUD}})


def test_groups_are_those_of_the_kinds_on_each_provider():
    one, other = (cluster_inventory(source)["groups"] for source in (OPENSTACK, PARALLELCLUSTER))
    assert one.pop("provider_openstack") == ["ctl", "login", "c1", "c2"]
    assert one == {"controller": ["ctl"], "login": ["login"], "compute": ["c1", "c2"], "c": ["c1", "c2"]}
    names = ["batch-st-c-1", "batch-dy-c-1"]
    assert other.pop("provider_parallelcluster") == ["ctl", "login", *names]
    # Its compute nodes have names of ParallelCluster's, and join by themselves.
    assert other == {"controller": ["ctl"], "login": ["login"], "joining": names, "c": names}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"provider": "openstak"}, "did you mean 'openstack'"),
        ({"provider": "parallelcluster", "openstack": {}}, "unknown key of the inventory: 'openstack'"),
        ({"opnstack": {}}, "unknown key of the inventory: 'opnstack'; did you mean 'openstack'"),
        ({"nodes": {}}, "the inventory lacks nodes"),
        ({"nodes": ["ctl"]}, "nodes is ['ctl']"),
        ({"openstack": "mine"}, "openstack is 'mine'"),
        ({"openstack": {"cidr": "10.20.0.1/24"}}, "cidr is '10.20.0.1/24', no IPv4 network"),
        ({"openstack": {}}, "cidr is '', no IPv4 network"),
        ({"openstack": {"cidr": "10.20.0.0/28"}}, "nodes of kind c would have host parts 21 to 22 in 10.20.0.0/28"),
    ],
)
def test_bad_file_is_refused_with_its_remedy(change, message):
    with pytest.raises(InputError) as refused:
        cluster_inventory({**OPENSTACK, **change})
    assert message in str(refused.value)
