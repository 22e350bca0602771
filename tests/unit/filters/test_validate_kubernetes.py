"""What is wrong with the variables of users' clusters is reported before any change."""

from ipaddress import IPv4Network
from itertools import combinations

import pytest

from isthmus.filters.validate.check import cluster_role_specs
from isthmus.filters.validate.layers.kubernetes import RANGE, kubernetes_problems
from isthmus.filters.validate.site import Site
from isthmus.filters.validate.sources import Sources
from tests.repo import tree

SPECS = cluster_role_specs(str(tree.ROOT / "roles"))
KNOWN = {"base_address": "10.1.0.10", "slurm_partitions": [{"name": "debug"}], "network_pod_range": "10.64.0.0/10"}
LIMITED = {"name": "debug", "max_time": "1-0"}
FLANNEL = {"network_flannel_range": "172.24.0.0/16"}


def problems(**variables):
    site = Site({"ctl": KNOWN | variables}, {"all": ["ctl"], "controller": ["ctl"]}, SPECS, Sources([]))
    return list(kubernetes_problems(site))


@pytest.mark.parametrize(
    "variables",
    [
        {},
        {"kubernetes_service_range": "172.20.0.0/20", "kubernetes_partition": "debug", "kubernetes_memory_mib": 4096},
        {"kubernetes_time": "1-0", "kubernetes_partition": "debug", "slurm_partitions": [LIMITED]},
        {"kubernetes_data_dir": "/scratch", "kubernetes_snapshot_s": 5},
        {"kubernetes_versions": ["1.36.3"], "kubernetes_kept": 0},
        {"kubernetes_jobs_port": 9000, "kubernetes_jobs_metrics_port": 0, "join_port": 7443},
        # Nobody has Flannel's network there.
        {"kubernetes_service_range": "172.24.0.0/18", "network_drivers": ["private"], **FLANNEL},
    ],
)
def test_right_variables_have_no_problem(variables):
    assert problems(**variables) == []


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"base_address": "10.96.0.10"}, "10.96.0.0/16 contains ctl (10.96.0.10)"),
        ({}, "10.96.0.0/16 overlaps network_pod_range 10.64.0.0/10"),
    ],
)
def test_default_range_of_services_counts_where_the_inventory_says_nothing(variables, message):
    groups = {"all": ["ctl"], "controller": ["ctl"], "kubernetes": ["ctl"]}
    found = kubernetes_problems(Site({"ctl": KNOWN | variables}, groups, SPECS, Sources([])))
    assert message in "\n".join(found)


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        (
            {"kubernetes_service_range": "10.96.0.0/33"},
            "10.96.0.0/33 is no range for Services; write it as 10.96.0.0/16",
        ),
        ({"kubernetes_service_range": "10.0.0.0/8"}, "is no range for Services"),
        ({"kubernetes_service_range": "10.96.0.1/16"}, "is no range for Services"),
        ({"kubernetes_service_range": "10.80.0.0/16"}, "overlaps network_pod_range 10.64.0.0/10"),
        (
            {"kubernetes_service_range": "172.24.0.0/18", "network_drivers": ["flannel"], **FLANNEL},
            "overlaps network_flannel_range 172.24.0.0/16",
        ),
        (
            {"kubernetes_service_range": "10.80.0.0/16", "network_pod_range": None},
            "overlaps network_pod_range 10.64.0.0/11",
        ),
        ({"kubernetes_service_range": "10.1.0.0/16"}, "contains ctl (10.1.0.10)"),
        ({"kubernetes_partition": "debg"}, "unknown partition in kubernetes_partition: 'debg'; did you mean 'debug'?"),
        (
            {
                "kubernetes_time": "1-0",
                "slurm_partitions": [{"name": "short", "default": True, "max_time": "00:30:00"}],
            },
            "kubernetes_time 1-0 is above max_time 00:30:00 of partition short; lower it, or choose another",
        ),
        (
            {"kubernetes_time": "UNLIMITED", "kubernetes_partition": "debug", "slurm_partitions": [LIMITED]},
            "is above max_time 1-0 of partition debug",
        ),
        ({"kubernetes_memory_mib": 512}, "kubernetes_memory_mib 512 is below 768"),
        ({"kubernetes_handover_s": 10}, "kubernetes_handover_s 10 is below 60"),
        ({"kubernetes_snapshot_s": 1}, "kubernetes_snapshot_s 1 is below 5"),
        ({"kubernetes_jobs_port": 444}, "kubernetes_jobs_port is 444; use a port from 1024 to 65535"),
        ({"kubernetes_jobs_port": 7443, "join_port": 7443}, "kubernetes_jobs_port is 7443, as join_port is"),
        ({"kubernetes_kept": -1}, "kubernetes_kept -1 is below 0; 0 means the present one alone"),
        ({"kubernetes_versions": [1.36]}, "kubernetes_versions has 1.36; write whole versions, such as 1.36.3"),
        ({"kubernetes_versions": ["newest"]}, "kubernetes_versions has 'newest'"),
        ({"kubernetes_image_days": -1}, "kubernetes_image_days -1 is below 0"),
        ({"kubernetes_data_dir": "tmp"}, "kubernetes_data_dir tmp is no whole path; write it as /var/tmp"),
        ({"kubernetes_data_dir": "/tmp/../home"}, "is no whole path"),
        ({"kubernetes_data_dir": "/home/scratch"}, "is on the homes; name a folder of each node's own disk"),
    ],
)
def test_wrong_variable_is_reported(variables, message):
    (problem,) = problems(**variables)
    assert message in problem


def test_ranges_that_nobody_chose_lie_apart():
    usual = {name: spec["default"] for role in ("network", "kubernetes") for name, spec in options(role).items()}
    ranges = [IPv4Network(usual[name]) for name in ("network_pod_range", "network_flannel_range", RANGE)]
    assert not any(one.overlaps(other) for one, other in combinations(ranges, 2))


def options(role):
    return {
        name: spec for name, spec in SPECS[role]["argument_specs"]["main"]["options"].items() if name.endswith("_range")
    }
