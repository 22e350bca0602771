"""Who may write a cluster's data."""

import errno
import os
import signal
import subprocess

import pytest

from isthmus.controlplane.data import ownership
from isthmus.controlplane.errors import OwnedError, UnansweredError
from isthmus.controlplane.layout import Layout


@pytest.fixture
def layout(tmp_path):
    return Layout(tmp_path / "cluster")


def never(job):
    return False


def always(job):
    return True


def silent(job):
    raise UnansweredError("slurmctld is away")


def test_first_job_takes_and_is_named(layout):
    ownership.take(layout, "7", always, wait_s=0).release()
    assert ownership.owner(layout) == "7"


def test_lock_refuses_a_second_owner(layout):
    held = ownership.take(layout, "7", never, wait_s=0)
    with pytest.raises(OwnedError, match="locked by job 7"):
        ownership.take(layout, "8", never, wait_s=0)
    held.release()
    ownership.take(layout, "8", never, wait_s=0).release()
    assert ownership.owner(layout) == "8"


@pytest.mark.parametrize(("slurm", "words"), [(always, "job 7, which has not ended"), (silent, "slurmctld is away")])
def test_free_lock_is_not_enough(layout, slurm, words):
    """A home without locks that nodes see shows every lock as free."""
    ownership.take(layout, "7", never, wait_s=0).release()
    with pytest.raises(OwnedError, match=words):
        ownership.take(layout, "8", slurm, wait_s=0)
    assert ownership.owner(layout) == "7"


def test_job_that_begins_again_needs_no_word_of_slurm(layout):
    ownership.take(layout, "7", never, wait_s=0).release()
    ownership.take(layout, "7", silent, wait_s=0).release()


@pytest.fixture
def leftover(layout):
    """A program of job 7, whose control plane is gone."""
    held = ownership.take(layout, "7", never, wait_s=0)
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, pass_fds=held.descriptors) as child:
        held.release()
        yield child
        child.kill()


def test_program_keeps_the_lock_against_another_job(layout, leftover):
    with pytest.raises(OwnedError):
        ownership.take(layout, "8", never, wait_s=0)
    assert leftover.poll() is None


def test_leftover_of_ones_own_job_is_ended(layout, leftover):
    ownership.take(layout, "7", never, wait_s=5).release()
    assert leftover.wait(5) == -signal.SIGTERM


def test_program_of_a_live_control_plane_in_the_same_job_is_left_alone(layout, leftover):
    layout.owner.write_text(f'{{"job": "7", "pid": {leftover.pid}}}')
    with pytest.raises(OwnedError):
        ownership.take(layout, "7", never, wait_s=0)
    assert leftover.poll() is None


def test_refusal_leaves_nothing_open(layout):
    ownership.take(layout, "7", never, wait_s=0).release()
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(OwnedError):
        ownership.take(layout, "8", always, wait_s=0)
    assert len(os.listdir("/proc/self/fd")) == before


def test_broken_owner_is_reported(layout):
    layout.folder.mkdir()
    layout.owner.write_text("{")
    with pytest.raises(OwnedError, match="remove it when no control plane of yours runs"):
        ownership.take(layout, "7", never, wait_s=0)


@pytest.fixture
def on_disk(tmp_path):
    """The folder on a node's disk, which is locked where the home has no locks that work."""
    made = tmp_path / "disk"
    made.mkdir()
    return made


@pytest.fixture
def home_without_locks(layout, monkeypatch):
    real = ownership.fcntl.flock
    layout.folder.mkdir()
    layout.lock.touch()

    def flock(descriptor, how):
        if os.path.samestat(os.fstat(descriptor), layout.lock.stat()):
            raise OSError(errno.ENOLCK, "No locks available")
        real(descriptor, how)

    monkeypatch.setattr(ownership.fcntl, "flock", flock)


def test_disk_locks_where_the_home_cannot(layout, on_disk, home_without_locks):
    held = ownership.take(layout, "7", never, on_disk=on_disk, wait_s=0)
    with pytest.raises(OwnedError, match="locked by job 7"):
        ownership.take(layout, "8", never, on_disk=on_disk, wait_s=0)
    held.release()
    ownership.take(layout, "8", never, on_disk=on_disk, wait_s=0).release()


def test_slurm_is_asked_where_the_home_cannot_lock(layout, on_disk, tmp_path, home_without_locks):
    """The first runs on another node, with another disk."""
    held = ownership.take(layout, "7", never, on_disk=tmp_path, wait_s=0)
    with pytest.raises(OwnedError, match="job 7, which has not ended"):
        ownership.take(layout, "8", always, on_disk=on_disk, wait_s=0)
    held.release()


def test_both_locks_are_given_back_where_one_is_held(layout, on_disk):
    held = os.open(on_disk, os.O_RDONLY)
    ownership.fcntl.flock(held, ownership.fcntl.LOCK_EX)
    with pytest.raises(OwnedError):
        ownership.take(layout, "7", never, on_disk=on_disk, wait_s=0)
    os.close(held)
    ownership.take(layout, "8", never, wait_s=0).release()
