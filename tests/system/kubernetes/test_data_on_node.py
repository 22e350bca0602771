"""A user's etcd on the disk of a node: what outlives an end and a death, who may look, and what is left."""

import pytest

from tests.support.wait import wait


@pytest.fixture(scope="module")
def on_disk(theirs):
    """The other user's cluster with its data on the node's disk; on the home again at the end."""
    theirs.down()
    theirs.up("--data node")
    yield theirs
    theirs.down()
    theirs.up("--data home")


@pytest.fixture
def folder(on_disk, nodes, settings):
    """The data, as root sees them on the node."""
    return on_disk.on_its_node(nodes, f"find {settings['data_dir']} -maxdepth 1 -user {on_disk.user} -name 'isthmus-*'")


def test_data_are_on_the_disk_and_the_users_alone(on_disk, nodes, folder, user):
    assert on_disk.on_its_node(nodes, f"stat --format='%a %U' {folder}") == f"700 {on_disk.user}"
    assert on_disk.on_its_node(nodes, f"ls {folder}/etcd") == "member"
    refused = nodes[on_disk.job()["node"]].run(f"runuser -u {user} -- ls {folder}")
    assert refused.rc != 0
    assert on_disk.login.run_as(on_disk.user, "ls .isthmus/cluster | grep -x etcd || true") == ""


def test_up_and_status_report_what_may_be_lost(on_disk):
    for reported in (on_disk.up()["data"], on_disk.status()["data"]["words"]):
        assert "when the node dies, what is newer is lost" in reported


def test_orderly_end_keeps_all_on_whichever_node(on_disk):
    on_disk.kubectl("create configmap kept-on-disk")
    on_disk.down()
    assert "-final.db" in on_disk.login.run_as(on_disk.user, "ls .isthmus/cluster/snapshots | tail -1")
    on_disk.up()
    assert on_disk.kubectl("get configmap kept-on-disk -o name") == "configmap/kept-on-disk"
    assert on_disk.status()["data"]["warnings"] == []


def test_killed_control_plane_goes_on_with_the_same_data(on_disk, nodes):
    on_disk.kubectl("create configmap kept-of-a-death")
    look = f"pgrep --uid {on_disk.user} --full 'isthmus.controlplane$' || true"
    before = on_disk.on_its_node(nodes, look)
    on_disk.on_its_node(nodes, f"kill -KILL {before.split()[-1]}")
    wait(lambda: on_disk.on_its_node(nodes, look), lambda now: now not in ("", before), timeout_s=180)
    wait(lambda: on_disk.status()["up"], timeout_s=180)
    assert on_disk.kubectl("get configmap kept-of-a-death -o name") == "configmap/kept-of-a-death"
    assert on_disk.status()["data"]["warnings"] == []


def test_purge_leaves_nothing_on_the_disk(on_disk, nodes, folder):
    node = on_disk.job()["node"]
    assert on_disk.down("--purge --yes")["left"] == ""
    assert nodes[node].run(f"test -e {folder}").rc != 0
    on_disk.up("--data node")
