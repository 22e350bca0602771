"""Where a pod may run."""

import pytest

from isthmus.kubelet.slurm.placing import place
from tests.support.pods.objects import SETTINGS, pod


def expression(key, operator, *values):
    return {"key": key, "operator": operator, **({"values": list(values)} if values else {})}


def terms(*found):
    return {"nodeSelectorTerms": [{"matchExpressions": list(one)} for one in found]}


def affinity(*found):
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms(*found)}}


@pytest.mark.parametrize(
    ("selector", "features", "nodes"),
    [
        ({}, (), ()),
        ({"kubernetes.io/os": "linux"}, (), ()),
        ({"kubernetes.io/hostname": "slurm"}, (), ()),
        ({"kubernetes.io/hostname": "c1"}, (), (frozenset({"c1"}),)),
        ({"feature.slurm/avx512": "true"}, ("avx512",), ()),
        ({"avx512": ""}, ("avx512",), ()),
        ({"gpu": "a100"}, ("a100",), ()),
        ({"gpu": "a100", "cpu": "avx512"}, ("a100", "avx512"), ()),
    ],
)
def test_selector_names_features_and_nodes(selector, features, nodes):
    found = place(pod(nodeSelector=selector), SETTINGS)
    assert (found.features, found.nodes, found.problems) == (features, nodes, ())


@pytest.mark.parametrize(
    ("found", "features"),
    [
        ([[expression("gpu", "In", "a100", "h100")]], ("a100|h100",)),
        ([[expression("gpu", "In", "none")], [expression("gpu", "In", "h100")]], ("h100",)),
        ([[expression("avx512", "Exists")]], ("avx512",)),
        ([[expression("cores", "Gt", "32")]], ()),
        ([[expression("cores", "Lt", "65")]], ()),
        ([[expression("disk", "DoesNotExist")]], ()),
        ([[expression("kubernetes.io/os", "NotIn", "windows")]], ()),
    ],
)
def test_affinity_is_met_by_one_term(found, features):
    got = place(pod(affinity=affinity(*found)), SETTINGS)
    assert (got.features, got.problems) == (features, ())


@pytest.mark.parametrize(
    "spec",
    [
        {"nodeSelector": {"kubernetes.io/os": "windows"}},
        {"nodeSelector": {"kubernetes.io/hostname": "c9"}},
        {"nodeSelector": {"gpu": "v100"}},
        {"affinity": affinity([expression("cores", "Gt", "64")])},
        {"affinity": affinity([expression("name", "Gt", "1")])},
        {"affinity": affinity([expression("kubernetes.io/os", "NotIn", "linux")])},
    ],
)
def test_what_no_node_meets_is_reported(spec):
    [problem] = place(pod(**spec), SETTINGS).problems
    assert problem.endswith("Slurm's features are: a100, avx512, h100")


@pytest.mark.parametrize(("name", "count"), [("slurm", 0), ("c1", 1)])
def test_fields_of_a_daemon_set_name_the_node(name, count):
    wanted = {"nodeSelectorTerms": [{"matchFields": [expression("metadata.name", "In", name)]}]}
    spec = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": wanted}}
    assert len(place(pod(affinity=spec), SETTINGS).problems) == count


def volume(*names):
    return {"spec": {"nodeAffinity": {"required": terms([expression("kubernetes.io/hostname", "In", *names)])}}}


def test_volume_on_a_node_ties_the_pod_to_it():
    assert place(pod(), SETTINGS, [volume("c1", "c2"), volume("c2", "c9")]).nodes == ({"c1", "c2"}, {"c2"})


def test_volumes_on_different_nodes_cannot_meet():
    assert "no node is in all" in place(pod(), SETTINGS, [volume("c1"), volume("c2")]).problems[0]
