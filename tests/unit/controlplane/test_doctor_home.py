"""What doctor says of a home, and when it names the node's disk as the remedy."""

import errno
import fcntl
import json
from dataclasses import asdict, replace

import pytest

from isthmus.controlplane.commands import up as starting
from isthmus.controlplane.commands import user_options
from isthmus.controlplane.data import ownership
from isthmus.controlplane.data.snapshotter import DataReport
from isthmus.controlplane.doctor import home as doctor_home
from isthmus.controlplane.doctor.findings import Level
from isthmus.controlplane.errors import OwnedError
from isthmus.controlplane.layout import JOB_NAME
from isthmus.controlplane.settings import DataLocation


@pytest.fixture
def no_locks(monkeypatch):
    """A home, and all else, without locks."""

    def flock(file, how):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", flock)


@pytest.fixture
def false_locks(monkeypatch):
    monkeypatch.setattr(fcntl, "flock", lambda file, how: None)


@pytest.fixture
def on_node(context):
    user_options.keep(context.home.cluster, {"data": "node"})


@pytest.mark.parametrize(
    ("slow_s", "is_on_home", "level", "remedy"),
    [
        (0.002, True, Level.OK, ""),
        (0.02, True, Level.WARNING, "`isthmus up --data node`"),
        (0.7, True, Level.FAILURE, "lose its own lead; `isthmus up --data node`"),
        (0.7, False, Level.OK, ""),
    ],
)
def test_slow_syncs(slow_s, is_on_home, level, remedy):
    found = doctor_home.judged(slow_s / 2, slow_s, is_on_home=is_on_home)
    assert found.level is level
    assert remedy in found.remedy
    assert bool(found.remedy) == bool(remedy)


def test_syncs_are_measured(context):
    (found,) = doctor_home.syncs(context)
    assert "a sync of the home takes" in found.what


@pytest.mark.parametrize(("locks", "words"), [("no_locks", "no locks"), ("false_locks", "one lock to two")])
@pytest.mark.parametrize("data", DataLocation)
def test_missing_locks(context, request, locks, words, data):
    user_options.keep(context.home.cluster, {"data": data})
    request.getfixturevalue(locks)
    (found,) = doctor_home.locking(context)
    assert words in found.what
    assert found.level is (Level.FAILURE if data is DataLocation.HOME else Level.WARNING)
    assert "`isthmus up --data node` does without" in found.remedy


def test_good_locks(context):
    assert [each.level for each in doctor_home.locking(context)] == [Level.OK]


def test_site_decides_unless_the_user_does(context, no_locks):
    on_disk = replace(context, settings=replace(context.settings, data=DataLocation.NODE))
    assert [each.level for each in doctor_home.locking(on_disk)] == [Level.WARNING]


@pytest.mark.parametrize("on_disk", [False, True])
def test_home_without_locks_has_no_owner(context, no_locks, tmp_path, on_disk):
    """Nor is there one where the node's disk has none."""
    with pytest.raises(OwnedError, match="there are no locks; `isthmus up --data node`"):
        ownership.take(context.home.cluster, "7", lambda _: False, wait_s=0, on_disk=tmp_path if on_disk else None)


def test_up_goes_on_without_locks(context, no_locks):
    with starting._alone(context):
        assert (context.home.folder / "up.lock").exists()


def test_snapshots_are_reported_while_it_runs(context, slurm):
    assert list(doctor_home.snapshots(context)) == []
    job = slurm.add(JOB_NAME)
    context.home.cluster.folder.mkdir()
    reported = DataReport(job.id, "c1", "/disk", "node", ("w",), every_s=30, problem="p")
    context.home.cluster.data.write_text(json.dumps(asdict(reported)))
    found = list(doctor_home.snapshots(context))
    assert [each.level for each in found] == [Level.OK, Level.WARNING, Level.WARNING]
    assert [each.what for each in found[1:]] == ["w", "no newer snapshot: p"]
