"""A control plane whose etcd writes to the node's disk: what is there after an end, a death, a move, a bad file."""

import re

import pytest

from isthmus.controlplane.data import claims, snapshots
from tests.support.servers import control_planes
from tests.support.wait import wait

# Never within a test: only the one at the start and the one at the end.
SELDOM_S = 3600


@pytest.fixture
def nodes(tmp_path):
    """Disks of three nodes."""
    disks = [tmp_path / name for name in ("c1", "c2", "c3")]
    for disk in disks:
        disk.mkdir(mode=0o1777)
    return disks


@pytest.fixture
def control(tmp_path, nodes):
    with control_planes.running(tmp_path, node=nodes[0], snapshot_s=SELDOM_S) as made:
        yield made


def go_on(control, job, node):
    """Start it on a node, and wait."""
    control.node = node
    control.start(job)
    control.wait_until_ready()


def names(control):
    reported = control.kubectl("get", "configmaps", "-o", "name").split()
    return {name.partition("/")[2] for name in reported} - {"kube-root-ca.crt"}


def write(control, name):
    control.kubectl("create", "configmap", name)


def written(control):
    """Wait for the snapshot of this start; return the names of all."""
    wait(lambda: control.reported()["saved"])
    return sorted(snapshots.listed(control.layout.snapshots))


def revision(control):
    return int(control.api.get("/api/v1/configmaps")["metadata"]["resourceVersion"])


def test_orderly_end_and_another_node_lose_nothing(control, nodes):
    assert not control.layout.etcd.exists()
    (folder,) = nodes[0].iterdir()
    assert folder.stat().st_mode & 0o777 == 0o700
    write(control, "kept")
    before = revision(control)
    assert control.stop() == 0
    assert written(control)[-1].is_final
    go_on(control, "2", nodes[1])
    assert names(control) == {"kept"}
    # A watch at an old revision is ended with an error, instead of staying silent.
    assert revision(control) > before + 900_000_000
    reported = control.reported()
    assert (reported["node"], reported["source"], reported["warnings"]) == ("c2", "snapshot", [])


def test_death_loses_nothing_on_its_node_and_the_last_moments_on_another(control, nodes):
    write(control, "early")
    control.kill()
    go_on(control, "2", nodes[0])
    assert names(control) == {"early"}
    assert written(control)[-1].generation == 1
    write(control, "late")
    control.kill()
    # A snapshot that broke off.
    (control.layout.snapshots / ".new-half").write_bytes(b"half")
    go_on(control, "3", nodes[1])
    assert names(control) == {"early"}
    assert re.fullmatch(
        "your cluster is as of .*: what was written later, on c1, is lost", *control.reported()["warnings"]
    )
    written(control)
    assert not list(control.layout.snapshots.glob(".new-*"))
    # The first node comes back: what it has is of another line, and gone.
    assert control.stop() == 0
    go_on(control, "4", nodes[0])
    assert names(control) == {"early"}


def test_damaged_snapshot_is_reported_and_the_one_before_it_used(control, nodes):
    write(control, "early")
    assert control.stop() == 0
    go_on(control, "2", nodes[0])
    write(control, "late")
    assert control.stop() == 0
    newest = max(snapshots.listed(control.layout.snapshots))
    path = control.layout.snapshots / newest.name
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    go_on(control, "3", nodes[1])
    assert names(control) == {"early"}
    first, second = control.reported()["warnings"]
    assert f"snapshot {newest.name} is damaged: its hash is wrong; the one before it is next" in first
    assert "is lost" in second


def test_data_move_from_home_to_disk_and_back(control, nodes):
    write(control, "on-disk")
    assert control.stop() == 0
    go_on(control, "2", None)
    assert names(control) == {"on-disk"}
    assert not control.layout.snapshots.exists()
    assert (control.reported()["every_s"], control.reported()["warnings"]) == (0, [])
    write(control, "on-home")
    assert control.stop() == 0
    go_on(control, "3", nodes[2])
    assert names(control) == {"on-disk", "on-home"}
    written(control)
    wait(lambda: not control.layout.etcd.exists())


def test_change_is_saved_in_time(tmp_path, nodes):
    with control_planes.running(tmp_path, node=nodes[0], snapshot_s=1) as control:
        write(control, "changed")
        before = revision(control)
        wait(lambda: written(control)[-1].revision, lambda saved: saved >= before)


def test_one_that_was_cut_off_ends_and_publishes_nothing(control, nodes):
    claim = claims.read(control.layout)
    written(control)
    claims.write(control.layout, claims.next_claim(claim, [], claim.data, "c9", ""))
    before = written(control)
    write(control, "lost")
    control.stop()
    assert written(control) == before
