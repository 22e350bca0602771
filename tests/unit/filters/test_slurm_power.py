"""Nodes that Slurm starts when jobs wait: names, settings, lines of nodes.conf and bounds of partitions."""

import pytest

from isthmus.filters.errors import InputError
from isthmus.filters.slurm.nodes import slurm_nodes
from isthmus.filters.slurm.partitions import slurm_partitions
from isthmus.filters.slurm.power import slurm_cloud, slurm_power

GROUPS = {"compute": ["c1"], "joining": ["b1", "b2", "b3"], "b": ["b1", "b2", "b3"]}
NUMBERS = {
    "suspend_time_s": 300,
    "suspend_timeout_s": 60,
    "resume_timeout_s": 600,
    "resume_rate": 10,
    "suspend_rate": 20,
}
NODES = ["c1", "b1", "b2", "b3"]


@pytest.mark.parametrize(
    ("items", "names"), [(["b"], ["b1", "b2", "b3"]), (["b[2-3]", "b3"], ["b2", "b3"]), (["b1"], ["b1"]), ([], [])]
)
def test_names(items, names):
    assert slurm_cloud(items, GROUPS, GROUPS["joining"]) == names


def test_removed_node_is_left_out():
    assert slurm_cloud(["b"], GROUPS, GROUPS["joining"], ["b2"]) == ["b1", "b3"]


@pytest.mark.parametrize("item", ["c1", "compute", "b4", "bb"])
def test_node_that_playbooks_visit_is_refused(item):
    with pytest.raises(InputError, match="known: b, b1, b2, b3, joining"):
        slurm_cloud([item], GROUPS, GROUPS["joining"])


def test_settings_of_slurm():
    assert slurm_power(["b1"], ["c1", "c2"], "/opt/isthmus", NUMBERS) == {
        "SuspendTime": 300,
        "SuspendTimeout": 60,
        "ResumeTimeout": 600,
        "ResumeRate": 10,
        "SuspendRate": 20,
        "ResumeProgram": "/opt/isthmus/bin/isthmus-cloud-resume",
        "SuspendProgram": "/opt/isthmus/bin/isthmus-cloud-suspend",
        "ResumeFailProgram": "/opt/isthmus/bin/isthmus-cloud-fail",
        "SuspendExcNodes": "c[1-2]",
    }


def test_cluster_without_such_nodes_has_no_power_saving():
    assert slurm_power([], ["c1"], "/opt/isthmus", NUMBERS) == {}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"resume_timeout_s": 5}, "slurm_cloud_resume_timeout_s is 5; give a whole number from 60"),
        ({"suspend_time_s": "300"}, "slurm_cloud_suspend_time_s is '300'"),
        ({"suspend_rate": 0}, "slurm_cloud_suspend_rate is 0"),
        ({"resume_rate": True}, "slurm_cloud_resume_rate is True"),
        ({"suspend_timeout_s": 10**6}, "to 65533"),
    ],
)
def test_bad_number_is_refused(changed, message):
    with pytest.raises(InputError, match=message):
        slurm_power(["b1"], [], "/opt/isthmus", {**NUMBERS, **changed})


def test_nodes_of_equal_hardware_are_apart_where_one_comes_and_goes():
    hosts = [{"name": name, "address": f"10.0.0.{at}", "cpus": 2, "memory_mib": 100} for at, name in enumerate(NODES)]
    assert slurm_nodes(hosts, GROUPS["b"]).splitlines() == [
        "NodeName=b[1-3] NodeAddr=10.0.0.[1-3] CPUs=2 RealMemory=100 State=CLOUD",
        "NodeName=c1 NodeAddr=10.0.0.0 CPUs=2 RealMemory=100 State=UNKNOWN",
    ]


@pytest.mark.parametrize(
    ("nodes", "most", "line"),
    [(["compute", "b"], 2, "b[1-2],c1"), (["compute", "b"], 0, "c1"), (["b"], 9, "b[1-3]"), (["b[2-3]"], 1, "b2")],
)
def test_partition_has_no_more_of_them_than_it_may(nodes, most, line):
    partition = {"name": "batch", "nodes": nodes, "cloud_max": most}
    assert f"Nodes={line} " in slurm_partitions([partition], GROUPS, NODES, GROUPS["b"])


@pytest.mark.parametrize(
    ("given", "message"),
    [({"cloud_max": -1}, "is -1"), ({"cloud_max": "2"}, "is '2'"), ({"nodes": ["b"], "cloud_max": 0}, "cloud_max 0")],
)
def test_bad_bound_is_refused(given, message):
    with pytest.raises(InputError, match=message):
        slurm_partitions([{"name": "batch", "nodes": ["compute"], **given}], GROUPS, NODES, GROUPS["b"])
