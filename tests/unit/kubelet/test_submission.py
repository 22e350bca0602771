"""The sbatch options of a pod's job."""

import subprocess
from dataclasses import replace

import pytest

from isthmus.kubelet.slurm import flags, script
from isthmus.kubelet.translate import pod as translate
from isthmus.model.network import Driver
from tests.support.pods.objects import SETTINGS, UID, container, pod

FOLDER = f"/home/alice/.isthmus/pods/{UID}"


def options(whole, settings=SETTINGS, **others):
    words = translate.job(whole, settings, **others).options
    return dict(word.removeprefix("--").partition("=")[::2] for word in words)


def test_ordinary_pod_asks_for_little():
    assert options(pod()) == {
        "job-name": "web",
        "comment": UID,
        "extra": "pod=shop/web",
        "output": f"{FOLDER}/slurm.log",
        "export": "NIL",
        "no-requeue": "",
        "chdir": "/home/alice",
        "pod-network": "private",
        "cpus-per-task": "1",
        "mem": "312M",
    }


@pytest.mark.parametrize(
    ("spec", "name", "value"),
    [
        ({"activeDeadlineSeconds": 60}, "time", "1"),
        ({"activeDeadlineSeconds": 61}, "time", "2"),
        ({"activeDeadlineSeconds": 1}, "time", "1"),
        ({"terminationGracePeriodSeconds": 30}, "signal", None),
        ({"terminationGracePeriodSeconds": 31}, "signal", "B:TERM@31"),
        ({"terminationGracePeriodSeconds": 10**6}, "signal", "B:TERM@65535"),
        ({"hostNetwork": True}, "pod-network", "none"),
        ({"priorityClassName": "high", "priority": 100}, "qos", "high"),
        ({"priorityClassName": "unknown", "priority": 100}, "qos", None),
        ({"priorityClassName": "unknown", "priority": 100}, "nice", None),
        ({"priority": -10}, "nice", "10"),
        ({"priority": -(2**31)}, "nice", str(2**31 - 3)),
        ({"nodeSelector": {"gpu": "a100", "x": "avx512"}}, "constraint", "a100&avx512"),
        ({"nodeSelector": {"kubernetes.io/hostname": "c2"}}, "nodelist", "c2"),
    ],
)
def test_pod_becomes_options(spec, name, value):
    assert options(pod(**spec)).get(name) == value


@pytest.mark.parametrize(("said", "cpus"), [({}, "5"), ({flags.FLAGS: "-n 4"}, "2"), ({flags.FLAGS: "-n4 -c3"}, "3")])
def test_what_is_beside_a_container_of_several_tasks_shares_their_cpus(said, cpus):
    parts = [container(name, resources={"requests": {"cpu": cpu}}) for name, cpu in (("main", "2"), ("wait", "2500m"))]
    assert options(pod(*parts, annotations=said))["cpus-per-task"] == cpus


@pytest.mark.parametrize(
    ("driver", "spec", "value"),
    [
        (Driver.FLANNEL, {}, "flannel"),
        (Driver.FLANNEL, {"hostNetwork": True}, "none"),
        (Driver.NONE, {}, None),
        (Driver.NONE, {"hostNetwork": True}, None),
    ],
)
def test_network_is_the_clusters(driver, spec, value):
    assert options(pod(**spec), replace(SETTINGS, driver=driver)).get("pod-network") == value


def test_devices_are_gres():
    settings = replace(SETTINGS, gres={"nvidia.com/gpu": "gpu", "x.org/fpga": "fpga"})
    one = container(resources={"limits": {"nvidia.com/gpu": "2", "x.org/fpga": "1"}})
    assert options(pod(one), settings)["gres"] == "fpga:1,gpu:2"


@pytest.mark.parametrize(
    ("limits", "gres"), [({"nvidia.com/gpu": "2"}, "gpu:2"), ({"amd.com/gpu": 1}, "gpu:1"), ({"cpu": "1"}, None)]
)
def test_gpus_need_no_settings(limits, gres):
    assert options(pod(container(resources={"limits": limits}))).get("gres") == gres


@pytest.mark.parametrize(
    ("text", "changed", "gone"),
    [
        ("--mem=1G", {"mem": "1G"}, ()),
        ("--mem-per-cpu=1G", {"mem-per-cpu": "1G"}, ("mem",)),
        ("--gpus=1", {"gpus": "1"}, ("gres",)),
        ("-c 4 --time=5", {"cpus-per-task": "4", "time": "5"}, ()),
        ("--exclusive", {"exclusive": ""}, ()),
    ],
)
def test_annotation_wins(text, changed, gone):
    one = container(resources={"limits": {"nvidia.com/gpu": "2"}})
    found = options(pod(one, annotations={flags.FLAGS: text}))
    assert {**found, **changed} == found
    assert not {*gone} & {*found}


@pytest.mark.parametrize(
    ("own", "space", "default", "expected"),
    [
        ("", "", "", None),
        ("", "", "site", "site"),
        ("", "team", "site", "team"),
        ("mine", "team", "site", "mine"),
    ],
)
@pytest.mark.parametrize(("name", "annotation"), [("account", flags.ACCOUNT), ("partition", flags.PARTITION)])
def test_owner_is_the_pods_the_namespaces_or_the_clusters(own, space, default, expected, name, annotation):
    namespace = {"metadata": {"name": "shop", "annotations": {annotation: space}}}
    found = options(pod(annotations={annotation: own}), replace(SETTINGS, **{name: default}), namespace=namespace)
    assert found.get(name) == expected


def test_any_of_several_nodes_is_all_but_the_others():
    wanted = [{"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["c1", "c2"]}]}]
    volume = {"spec": {"nodeAffinity": {"required": {"nodeSelectorTerms": wanted}}}}
    assert options(pod(), volumes=[volume])["exclude"] == "c3"


def test_percent_is_no_pattern_of_slurm():
    assert options(pod(), replace(SETTINGS, pods="/home/%u"))["output"] == f"/home/%%u/{UID}/slurm.log"


def test_script_becomes_the_supervisor():
    assert script.text(translate.job(pod(), SETTINGS)).splitlines() == [
        "#!/bin/sh",
        "umask 077",
        "export HOME=/home/alice",
        "export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        f"exec /opt/isthmus/bin/python -I -m isthmus.supervisor {FOLDER}",
    ]


@pytest.mark.parametrize("home", ["/home/a b", "/home/$(id)", "/home/`id`", "/home/a'b", '/home/"', "/home/a\nid"])
def test_script_quotes_what_varies(home):
    job = replace(translate.job(pod(), SETTINGS), environment=(("HOME", home),), folder=home, python="printf")
    text = script.text(job).replace("-I -m isthmus.supervisor", "%s")
    shown = subprocess.run(["sh", "-c", text], capture_output=True, text=True, check=True)
    assert shown.stdout == home
