"""What a pod needs of Slurm."""

from dataclasses import replace

import pytest

from isthmus.kubelet.translate.resources import demand, extended, memory_limit_mib
from tests.support.pods.objects import SETTINGS, container, pod


def asks(name="app", limits=None, sidecar=False, **requests):
    resources = {"requests": requests, **({"limits": limits} if limits else {})}
    return container(name, resources=resources, **({"restartPolicy": "Always"} if sidecar else {}))


def needs(found):
    return found.cpus, found.memory_mib


@pytest.mark.parametrize(
    ("containers", "expected"),
    [
        ([container()], (1, 256)),
        ([container("a"), container("b")], (1, 512)),
        ([asks(cpu="100m")], (1, 256)),
        ([asks("a", cpu="600m"), asks("b", cpu="600m")], (2, 512)),
        ([asks(cpu="2", memory="1Gi")], (2, 1024)),
        ([asks(memory="100M")], (1, 96)),
        ([asks(memory="1")], (1, 64)),
        ([asks(limits={"memory": "1Gi"}, memory="64Mi")], (1, 1024)),
        ([asks(limits={"memory": "16Mi"}, memory="1")], (1, 16)),
        ([asks(limits={"cpu": "4"}, cpu="1")], (1, 256)),
        ([asks(limits={"cpu": "3", "memory": "300Mi"})], (3, 300)),
        ([asks("a", memory="300Mi"), container("b")], (1, 556)),
    ],
)
def test_containers_add_up(containers, expected):
    assert needs(demand(pod(*containers), SETTINGS)) == expected


@pytest.mark.parametrize(
    ("init", "expected"),
    [
        ([asks("i", cpu="4")], (4, 512)),
        ([asks("i", cpu="1"), asks("j", cpu="3", memory="100Mi")], (3, 512)),
        ([asks("s", cpu="1", memory="100Mi", sidecar=True)], (3, 612)),
        ([asks("s", cpu="1", memory="1Gi", sidecar=True), asks("i", cpu="4", memory="1Gi")], (5, 2048)),
        ([asks("i", cpu="4", memory="1Gi"), asks("s", cpu="1", memory="1Gi", sidecar=True)], (4, 1536)),
    ],
)
def test_init_containers_run_in_turn_beside_sidecars(init, expected):
    found = pod(asks("a", cpu="1", memory="256Mi"), asks("b", cpu="1", memory="256Mi"), initContainers=init)
    assert needs(demand(found, SETTINGS)) == expected


def test_resources_of_the_pod_win_over_the_sum():
    found = pod(asks(cpu="1"), asks("b", cpu="1"), resources={"requests": {"cpu": "5"}, "limits": {"memory": "3Gi"}})
    assert needs(demand(found, SETTINGS)) == (5, 3072)


def test_overhead_of_a_runtime_class_is_added():
    assert needs(demand(pod(asks(cpu="1"), overhead={"cpu": "250m", "memory": "10Mi"}), SETTINGS)) == (2, 266)


@pytest.mark.parametrize(
    ("init", "expected"), [((), 32 + 2 * 24), ([container("i")], 32 + 2 * 24), ([asks("s", sidecar=True)], 32 + 3 * 24)]
)
def test_supervisor_and_apptainer_have_memory_of_their_own(init, expected):
    """What runs together counts; init containers run before."""
    found = demand(pod(container("a"), container("b"), initContainers=init), SETTINGS)
    assert (found.overhead_mib, found.job_mib) == (expected, found.memory_mib + expected)


def test_defaults_are_settings():
    settings = replace(SETTINGS, cpus=2, memory_mib=100, least_memory_mib=500)
    assert needs(demand(pod(), settings)) == (2, 100)
    assert needs(demand(pod(asks(memory="1Mi")), settings)) == (2, 500)


def test_gres_are_named_as_slurm_does():
    settings = replace(SETTINGS, gres={"nvidia.com/gpu": "gpu", "example.org/a100": "gpu:a100"})
    two = pod(asks("a", limits={"nvidia.com/gpu": "1"}), asks("b", limits={"nvidia.com/gpu": 2, "example.org/a100": 1}))
    assert demand(two, settings).gres == {"gpu": 3, "gpu:a100": 1}
    assert demand(pod(asks(limits={"nvidia.com/gpu": "0"})), settings).gres == {}


@pytest.mark.parametrize(
    ("containers", "init", "gres"),
    [
        ([asks(limits={"nvidia.com/gpu": "2"})], [], {"gpu": 2}),
        ([asks(limits={"amd.com/gpu": 1})], [], {"gpu": 1}),
        ([asks("a", limits={"nvidia.com/gpu": 1}), asks("b", limits={"nvidia.com/gpu": 1})], [], {"gpu": 2}),
        ([asks("a", limits={"nvidia.com/gpu": 1}), asks("b", limits={"amd.com/gpu": 1})], [], {"gpu": 2}),
        ([asks(limits={"nvidia.com/gpu": 1})], [asks("i", limits={"nvidia.com/gpu": 3})], {"gpu": 3}),
        ([asks(limits={"nvidia.com/gpu": 1})], [asks("s", limits={"nvidia.com/gpu": 1}, sidecar=True)], {"gpu": 2}),
        ([asks(cpu="2")], [], {}),
    ],
)
def test_gpus_are_gres_of_every_site(containers, init, gres):
    assert demand(pod(*containers, initContainers=init), SETTINGS).gres == gres


def test_other_resources_are_listed():
    found = pod(asks(limits={"nvidia.com/gpu": 1, "ephemeral-storage": "1Gi"}), initContainers=[asks("i", fpga="1")])
    assert extended(found) == {"nvidia.com/gpu", "fpga"}


@pytest.mark.parametrize(("limits", "expected"), [(None, None), ({"memory": "1M"}, 1), ({"memory": "2Gi"}, 2048)])
def test_limit_of_a_container_is_whole_mib(limits, expected):
    assert memory_limit_mib(asks(limits=limits)) == expected
