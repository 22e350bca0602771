"""Settings of OpenStack that validate refuses, offline."""

import pytest

from isthmus.filters.provider.inventory import cluster_inventory
from isthmus.filters.validate.check import cluster_problems, cluster_role_specs
from tests.repo.tree import ROOT

SPECS = cluster_role_specs(str(ROOT / "roles"))
NODES = {"ctl": {"group": "controller", "at": 10}, "c": {"group": "compute", "count": 2, "at": 21}}
MACHINES = {"ctl": {"flavor": "m1"}, "c": {"flavor": "m1"}}


def problems(**changed):
    settings = {"cidr": "192.0.2.0/24", "machines": MACHINES, **changed}
    found = cluster_inventory({"provider": "openstack", "nodes": NODES, "openstack": settings})
    shared = {"cluster_name": "hpc", "base_users": [], "network_pod_range": "10.64.0.0/11", **found["variables"]}
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
