"""Moves between versions that are cut off, or long: real programs, under the names of other versions."""

import json

import pytest

from isthmus.clients.kube.apiserver import Access, ApiServer
from isthmus.controlplane.data import snapshots
from isthmus.controlplane.versions import record
from tests.support.servers import control_planes
from tests.support.wait import wait

NEXT = "1.37.0-3.6.14"


@pytest.fixture
def control(tmp_path):
    """A control plane that has run once, and has an object."""
    with control_planes.running(tmp_path) as made:
        made.kubectl("create", "configmap", "kept")
        assert made.stop() == 0
        yield made


def names(control):
    found = json.loads(control.kubectl("get", "configmaps", "-o", "json"))["items"]
    return {each["metadata"]["name"] for each in found} - {"kube-root-ca.crt"}


def version(control):
    return json.loads(control.layout.state.read_text())["kubernetes"]


def left(control):
    """What a move leaves beside the data."""
    return {path.name for path in control.layout.folder.iterdir() if "etcd-" in path.name}


def test_late_user_goes_through_the_release_between_and_never_back(control):
    control.add(NEXT)
    control.add("1.38.0-3.6.14")
    control.start("2")
    control.wait_until_ready()
    assert (version(control), names(control), left(control)) == ("1.38.0", {"kept"}, set())
    assert "Kubernetes 1.36.3, then 1.37.0, 1.38.0" in (control.home / "run.log").read_text()
    assert record.read(control.layout).versions.kubernetes == "1.38.0"
    assert control.stop() == 0
    control.wanted = "1.37"
    control.start("3")
    assert control.process.wait(60) != 0
    assert "1.37.0 cannot read them; stay with 1.38" in (control.home / "run.log").read_text()


def test_control_plane_that_is_killed_in_a_trial_goes_on(control):
    # It never becomes ready, and never ends.
    control.add(NEXT, kube_controller_manager="#!/bin/sh\nexec sleep 600\n")
    control.start("2")
    wait(lambda: record.read(control.layout).move, lambda move: move is not None)
    wait(control.conditions, lambda now: now.get("kube-apiserver", {}).get("state") == "ready", timeout_s=120)
    # No pod is touched before it serves.
    assert control.conditions()["kubelet"]["state"] == "waiting"
    control.kill()
    assert left(control) == {"etcd-before"}
    (control.others[0] / "kube-controller-manager").unlink()
    (control.others[0] / "kube-controller-manager").symlink_to(
        (control.programs / "kube-controller-manager").readlink()
    )
    control.start("3")
    control.wait_until_ready()
    assert (version(control), names(control), left(control)) == ("1.37.0", {"kept"}, set())


def test_version_that_fails_publishes_no_snapshot_of_data_on_a_disk(tmp_path):
    node = tmp_path / "c1"
    node.mkdir(mode=0o700)
    with control_planes.running(tmp_path, node=node) as control:
        control.kubectl("create", "configmap", "kept")
        assert control.stop() == 0
        before = set(snapshots.listed(control.layout.snapshots))
        claim = control.layout.claim.read_text()
        # etcd and the API server serve meanwhile.
        control.add(NEXT, coredns="#!/bin/sh\nsleep 2; exit 1\n")
        control.start("2")
        wait(lambda: record.read(control.layout).failure, lambda failure: failure is not None, interval_s=0.1)
        assert set(snapshots.listed(control.layout.snapshots)) == before
        control.wait_until_ready()
        assert (version(control), names(control), control.layout.claim.read_text()) == ("1.36.3", {"kept"}, claim)
        wait(lambda: max(snapshots.listed(control.layout.snapshots)), lambda newest: newest > max(before))


def test_etcd_of_the_next_release_takes_over_and_counts_as_it(control):
    """Real ones; the older cannot read the data any more, and is refused."""
    newer = {"etcd": "etcd-after", "etcdutl": "etcdutl-after"}
    control.others += (control_planes.folder_of_programs(control.home.parent / "1.36.3-3.7.3", newer),)
    control.start("2")
    control.wait_until_ready()
    assert (version(control), names(control), left(control)) == ("1.36.3", {"kept"}, set())
    assert record.read(control.layout).versions.etcd == "3.7.3"
    name, layout = "apiserver-etcd-client", control.layout
    access = Access(
        f"https://127.0.0.1:{control.ports.etcd}",
        layout.certificate("etcd-ca"),
        layout.certificate(name),
        layout.key(name),
    )
    found = ApiServer(access).get("/version")
    assert (found["etcdserver"], found["etcdcluster"]) == ("3.7.3", "3.7.0")
    assert control.stop() == 0
    control.others = ()
    control.start("3")
    assert control.process.wait(60) != 0
    assert "etcd 3.7.3 wrote your data last, and from there etcd 3.6.14" in (control.home / "run.log").read_text()
