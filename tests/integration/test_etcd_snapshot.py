"""Snapshots of a real etcd: what counts as a change, and a file that etcdutl makes data of."""

import subprocess
from base64 import b64encode
from itertools import pairwise

import pytest

from isthmus.clients.etcd.gateway import Gateway
from isthmus.clients.etcd.snapshot import Snapshots, is_whole
from isthmus.controlplane import programs
from isthmus.controlplane.data.snapshotter import BOUNDS
from tests.support.servers.etcd import program, running

WORTH_NOTHING = ("/registry/leases/kube-node-lease/slurm", "/registry/masterleases/10.0.0.1", "compact_rev_key")
OBJECTS = ("/registry/configmaps/default/a", "/registry/pods/default/a", "/registry/leased.example.org/a")


@pytest.fixture(scope="module")
def member(tmp_path_factory):
    """An etcd without users, as a control plane has it."""
    with running(tmp_path_factory.mktemp("etcd"), users=False) as cluster:
        yield cluster


@pytest.fixture
def gateway(member):
    made = Gateway(member.access(""))
    yield made
    made.close()


def encoded(text):
    return b64encode(text.encode()).decode()


def put(gateway, key, value="x"):
    gateway.call("kv/put", {"key": encoded(key), "value": encoded(value)})


def delete(gateway, key):
    gateway.call("kv/deleterange", {"key": encoded(key)})


@pytest.mark.parametrize("key", WORTH_NOTHING)
def test_what_is_renewed_all_the_time_is_no_change(gateway, key):
    etcd = Snapshots(gateway)
    before, number = etcd.mark(BOUNDS), etcd.revision()
    put(gateway, key)
    assert (etcd.mark(BOUNDS), etcd.revision()) == (before, number + 1)


@pytest.mark.parametrize("key", OBJECTS)
def test_objects_that_come_change_and_go_are_changes(gateway, key):
    etcd = Snapshots(gateway)
    marks = [etcd.mark(BOUNDS)]
    # The last goes while a younger one stays, so no revision shows it.
    for act, name in ((put, key), (put, key), (put, f"{key}-younger"), (delete, key)):
        act(gateway, name)
        marks.append(etcd.mark(BOUNDS))
    assert all(one != next_one for one, next_one in pairwise(marks))


def test_etcdutl_takes_the_file_and_raises_revisions(gateway, tmp_path):
    # More than one part of a stream.
    put(gateway, "/registry/secrets/large", "x" * 200_000)
    etcd, path = Snapshots(gateway), tmp_path / "snapshot"
    with path.open("wb") as file:
        saved = etcd.save(file)
    assert saved == path.stat().st_size > 200_000
    assert is_whole(path)
    subprocess.run([program("etcdutl"), *programs.restore(path, tmp_path / "data")], check=True, capture_output=True)
    assert (tmp_path / "data/member/snap/db").exists()
