"""The node that stands for all of Slurm."""

from dataclasses import replace

import pytest

from isthmus.kubelet.node import node_object as node
from isthmus.model.slurm.cluster import Limit, Partition, SlurmCluster, SlurmNode
from tests.support.pods.objects import SETTINGS
from tests.support.pods.statuses import at

HOST = node.Host("10.64.0.1", 10250, "v1.36.3", "apptainer://1.4.2", "amd64", "6.12", "Debian GNU/Linux 13")
C1 = SlurmNode("c1", 32, 8192, {"gpu:a100": 2}, frozenset({"avx512", "a&b"}))
C2 = SlurmNode("c2", 16, 4096, {"gpu": 1})
OTHER = SlurmNode("x1", 64, 65536)
CLUSTER = SlurmCluster((C1, C2, OTHER), (Partition("main", frozenset({"c1", "c2"})),), qos=frozenset({"normal"}))


def sizes(slurm):
    found = node.node_status(SETTINGS, slurm, HOST, None, at(0))
    return [(found[kind]["cpu"], found[kind]["memory"], found[kind]["pods"]) for kind in ("capacity", "allocatable")]


@pytest.mark.parametrize(
    ("change", "allocatable"),
    [
        ({}, ("48", "12288Mi", "500")),
        ({"nodes": (C1, replace(C2, state="DOWN"))}, ("32", "8192Mi", "500")),
        ({"nodes": (C1, replace(C2, state="MIXED+DRAIN"))}, ("32", "8192Mi", "500")),
        ({"nodes": (C1, replace(C2, state="IDLE*"))}, ("32", "8192Mi", "500")),
        ({"nodes": (C1, replace(C2, state="ALLOCATED"))}, ("48", "12288Mi", "500")),
        ({"partitions": (Partition("main", frozenset({"c1", "c2"}), "DRAIN"),)}, ("0", "0Mi", "500")),
        ({"limits": (Limit(cpus=8), Limit(cpus=40, memory_mib=1024, jobs=10))}, ("8", "1024Mi", "10")),
        ({"limits": (Limit(cpus=100, jobs=1000),)}, ("48", "12288Mi", "500")),
    ],
)
def test_allocatable_is_what_works_and_is_allowed(change, allocatable):
    assert sizes(replace(CLUSTER, **change)) == [("48", "12288Mi", "500"), allocatable]


@pytest.mark.parametrize(
    ("change", "capacity", "allocatable"),
    [
        ({}, "3", "3"),
        ({"nodes": (C1, replace(C2, state="DOWN"))}, "3", "2"),
        ({"nodes": (replace(C1, gres={}), C2)}, "1", "1"),
        ({"nodes": (replace(C1, gres={}), replace(C2, gres={"fpga": 4}))}, None, None),
        ({"limits": (Limit(gres={"gpu": 2}),)}, "3", "2"),
    ],
)
@pytest.mark.parametrize("resource", ["nvidia.com/gpu", "amd.com/gpu"])
def test_gpus_are_those_of_slurm(resource, change, capacity, allocatable):
    found = node.node_status(SETTINGS, replace(CLUSTER, **change), HOST, None, at(0))
    assert (found["capacity"].get(resource), found["allocatable"].get(resource)) == (capacity, allocatable)


def test_devices_of_all_types_count():
    found = node.node_status(SETTINGS, CLUSTER, HOST, None, at(0))
    assert found["capacity"]["nvidia.com/gpu"] == "3"
    settings = replace(SETTINGS, gres={"nvidia.com/a100": "gpu:a100", "x.org/fpga": "fpga"})
    found = node.node_status(settings, replace(CLUSTER, limits=(Limit(gres={"gpu:a100": 1}),)), HOST, None, at(0))
    assert found["capacity"]["nvidia.com/a100"] == "2"
    assert found["allocatable"]["nvidia.com/a100"] == "1"
    assert "x.org/fpga" not in found["capacity"]


def test_node_says_how_it_is_reached():
    found = node.node_object(SETTINGS, CLUSTER, HOST, None, at(0))
    assert found["metadata"]["name"] == "slurm"
    assert found["spec"] == {}
    status = found["status"]
    assert status["addresses"][0] == {"type": "InternalIP", "address": "10.64.0.1"}
    assert status["daemonEndpoints"] == {"kubeletEndpoint": {"Port": 10250}}
    assert status["declaredFeatures"] == ["ExtendWebSocketsToKubelet"]
    assert status["nodeInfo"]["kubeletVersion"] == "v1.36.3"


def test_features_are_labels_and_settings():
    assert node.node_object(SETTINGS, CLUSTER, HOST, None, at(0))["metadata"]["labels"] == {
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/hostname": "slurm",
        "type": "slurm",
        "feature.slurm/avx512": "true",
    }
    settings = node.settings_with(SETTINGS, CLUSTER, HOST)
    assert (settings.features, settings.slurm_nodes) == ({"avx512", "a&b"}, {"c1", "c2"})
    assert settings.qos == {"normal"}
    assert settings.labels["kubernetes.io/arch"] == "amd64"


@pytest.mark.parametrize(("state", "count"), [("IDLE", 0), ("DRAINED", 1), ("DOWN*", 1)])
def test_cluster_without_a_node_is_tainted(state, count):
    nodes = tuple(replace(one, state=state) for one in CLUSTER.nodes)
    assert len(node.taints(replace(CLUSTER, nodes=nodes))) == count


def conditions(status):
    return {one["type"]: (one["status"], one["lastTransitionTime"]) for one in status["conditions"]}


def test_node_stays_ready_while_slurm_is_silent():
    first = node.node_status(SETTINGS, CLUSTER, HOST, None, at(0))
    later = node.node_status(SETTINGS, None, HOST, {"status": first}, at(60))
    assert later["allocatable"] == first["allocatable"]
    reported = conditions(later)
    assert reported["Ready"] == ("True", "2026-01-02T03:00:00Z")
    assert reported["SlurmReachable"] == ("False", "2026-01-02T03:01:00Z")
    assert {one["lastHeartbeatTime"] for one in later["conditions"]} == {"2026-01-02T03:01:00Z"}


def test_lease_is_renewed_and_keeps_its_version():
    first = node.lease(SETTINGS, None, at(0))
    assert (first["metadata"]["namespace"], first["spec"]["holderIdentity"]) == ("kube-node-lease", "slurm")
    first["metadata"]["resourceVersion"] = "7"
    again = node.lease(SETTINGS, first, at(10))
    assert again["metadata"] == first["metadata"]
    assert again["spec"]["renewTime"] == "2026-01-02T03:00:10.000000Z"


def test_labels_of_the_node_object_count_but_those_of_features_that_are_gone():
    known = {"example.org/disk": "fast", "feature.slurm/gone": "true", "kubernetes.io/os": "plan9"}
    found = node.settings_with(SETTINGS, CLUSTER, HOST, known).labels
    assert found["example.org/disk"] == "fast"
    assert "feature.slurm/gone" not in found
    assert found["kubernetes.io/os"] == "linux"
