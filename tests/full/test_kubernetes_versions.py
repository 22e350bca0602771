"""A user's data, and the kubelet, with real versions: 1.36.1, 1.36.3, then 1.37.2 with another etcd, and never back.

The programs are built, which takes a quarter of an hour; afterwards they are in the cache.
"""

import base64
import json
import os
import subprocess
import sys

import pytest

from isthmus.controlplane.versions import record
from isthmus.controlplane.versions.plan import Versions
from tests.repo.tree import ROOT
from tests.support.servers import control_planes

BEFORE = {name: f"{name}-before" for name in ("kube-apiserver", "kube-controller-manager")}
AFTER = {name: f"{name}-after" for name in (*BEFORE, "etcd", "etcdutl")}
KIND = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "kites.example.org"},
    "spec": {
        "group": "example.org",
        "scope": "Namespaced",
        "names": {"plural": "kites", "singular": "kite", "kind": "Kite"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}
GROUP = {
    "apiVersion": "scheduling.k8s.io/v1alpha2",
    "kind": "PodGroup",
    "metadata": {"name": "pair"},
    "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}},
}
GROUPS = "podgroups.scheduling.k8s.io"
KITE = {"apiVersion": "example.org/v1", "kind": "Kite", "metadata": {"name": "red"}, "spec": {"tail": 3}}


@pytest.fixture(scope="module")
def control(tmp_path_factory):
    """A cluster of the oldest version, with data."""
    folder = tmp_path_factory.mktemp("versions")
    oldest = control_planes.folder_of_programs(folder / "1.36.1-3.6.14", BEFORE)
    made = control_planes.ControlPlane(folder / "home", oldest)
    made.home.mkdir()
    made.start()
    try:
        made.wait_until_ready()
        fill(made)
        yield made
    finally:
        if made.process.poll() is None:
            made.stop()


def fill(control):
    control.kubectl("create", "secret", "generic", "word", "--from-literal=word=xyzzy")
    control.kubectl("create", "deployment", "web", "--image=nginx", "--replicas=2")
    control.kubectl("apply", "-f", "-", text=json.dumps(KIND))
    control.kubectl("wait", "--for=condition=Established", "crd/kites.example.org")
    control.kubectl("apply", "-f", "-", text=json.dumps(KITE))
    control.kubectl("apply", "-f", "-", text=json.dumps(GROUP))


def on_the_loopback(program):
    """From 1.37 on an API server does not start where it would publish such an address."""
    real = program.readlink()
    program.unlink()
    program.write_text(f'#!/bin/sh\nexec {real} "$@" --endpoint-reconciler-type=none\n')
    program.chmod(0o755)


def objects(control):
    """What the user made, and what the controllers made of it."""
    pods = json.loads(control.kubectl("get", "pods", "-o", "json"))["items"]
    secret = json.loads(control.kubectl("get", "secret", "word", "-o", "json"))["data"]["word"]
    kite = json.loads(control.kubectl("get", "kite", "red", "-o", "json"))["spec"]
    group = json.loads(control.kubectl("get", GROUPS, "pair", "-o", "json"))
    assert group["spec"]["schedulingPolicy"] == GROUP["spec"]["schedulingPolicy"]
    uids = {each["metadata"]["uid"] for each in (*pods, group)}
    return uids, base64.b64decode(secret), kite


def served(control):
    return control.api.get("/version")["gitVersion"].removeprefix("v")


def go_on(control, job):
    assert control.stop() == 0
    control.start(job)
    control.wait_until_ready()
    return served(control)


def test_data_outlive_each_move(control):
    before = objects(control)
    assert (served(control), len(before[0])) == ("1.36.1", 3)
    folder = control.home.parent
    control.others += (control_planes.folder_of_programs(folder / "1.36.3-3.6.14"),)
    assert (go_on(control, "2"), objects(control)) == ("1.36.3", before)
    after = control_planes.folder_of_programs(folder / "1.37.2-3.7.3", AFTER)
    on_the_loopback(after / "kube-apiserver")
    control.others += (after,)
    assert (go_on(control, "3"), objects(control)) == ("1.37.2", before)
    assert record.read(control.layout).versions == Versions("1.37.2", "3.7.3")
    assert not (control.layout.folder / "etcd-before").exists()
    # It works as well as one that began with this version.
    control.kubectl("scale", "deployment", "web", "--replicas=3")
    control.kubectl("wait", "--for=jsonpath={.status.replicas}=3", "deployment/web", "--timeout=60s")
    assert objects(control)[0] > before[0]
    # The group is written in the new version, and is gone when it is deleted.
    control.kubectl("label", GROUPS, "pair", "seen=yes")
    assert go_on(control, "4") == "1.37.2"
    control.kubectl("delete", GROUPS, "pair", "--timeout=60s")


def test_release_before_is_refused_and_leaves_the_data_alone(control):
    assert control.stop() == 0
    control.wanted = "1.36"
    control.start("5")
    assert control.process.wait(60) != 0
    assert "1.36.3 cannot read them; stay with 1.37" in (control.home / "run.log").read_text()
    control.wanted = ""
    control.start("6")
    control.wait_until_ready()
    assert served(control) == "1.37.2"


@pytest.mark.parametrize("release", ["before", "after"])
def test_kubelet_works_with_the_api_server_of_another_release(release):
    """The same tests as with the present one; those of workloads and benchmarks are about other programs."""
    others = ("test_workloads.py", "test_bench.py")
    left = [word for name in others for word in ("--ignore", f"tests/integration/kubernetes/{name}")]
    command = [sys.executable, "-m", "pytest", "-q", "tests/integration/kubernetes", *left]
    environment = os.environ | {"ISTHMUS_TEST_KUBERNETES": release}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-8000:]
