"""The module image_prune: what is in use stays, and what a run has locked."""

import fcntl
import os
import time

import pytest

from tests.support import ansible_modules

DAY_S = 86400


@pytest.fixture
def folder(tmp_path):
    """Four archives, the first used a day ago and each further a day earlier; and other files."""
    for days, key in enumerate("abcd", start=1):
        for suffix in ("", ".lock", ".customize"):
            put(tmp_path / f"node-{key * 16}.tar{suffix}", 0 if suffix == ".lock" else days)
    for name in ("node-eeeeeeeeeeeeeeee.qcow2", "node-mine.tar", "other.tar"):
        put(tmp_path / name, 9)
    return tmp_path


def put(path, days):
    path.write_text("archive")
    os.utime(path, (at := time.time() - days * DAY_S, at))


def prune(folder, used="a", **other):
    arguments = {"used": str(folder / f"node-{used * 16}.tar")} | other
    return ansible_modules.run(ansible_modules.load("roles/image/library/image_prune.py"), **arguments)


def archives(folder):
    return {path.name[5] for path in folder.glob("node-????????????????.tar")}


def test_two_used_last_stay(folder):
    assert prune(folder)["changed"]
    assert archives(folder) == {"a", "b"}
    assert not prune(folder)["changed"]


def test_only_archives_and_their_last_steps_go(folder):
    prune(folder)
    left = {path.name for path in folder.iterdir() if path.name.startswith(("node-d", "node-e", "node-m", "other"))}
    assert left == {"node-dddddddddddddddd.tar.lock", "node-eeeeeeeeeeeeeeee.qcow2", "node-mine.tar", "other.tar"}


def test_old_archive_that_is_used_again_counts_as_new(folder):
    prune(folder, used="d")
    assert archives(folder) == {"a", "d"}
    put(folder / f"node-{'c' * 16}.tar", 0.5)
    prune(folder, used="a")
    assert archives(folder) == {"a", "d"}


def test_archive_used_within_the_hour_stays(folder):
    for key in "bcd":
        put(folder / f"node-{key * 16}.tar", 0.5 / 24)
    assert not prune(folder)["changed"]
    assert archives(folder) == {*"abcd"}


def test_archive_whose_lock_is_held_stays(folder):
    with (folder / f"node-{'d' * 16}.tar.lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        prune(folder)
    assert archives(folder) == {"a", "b", "d"}


def test_rest_of_a_build_that_was_cut_off_goes(folder):
    part = folder / f"node-{'f' * 16}.tar.part"
    put(part, 9)
    assert str(part) in prune(folder)["removed"]
    assert not part.exists()


def test_check_mode_removes_nothing(folder):
    before = {path: path.stat().st_mtime for path in folder.iterdir()}
    assert prune(folder, _ansible_check_mode=True)["changed"]
    assert {path: path.stat().st_mtime for path in folder.iterdir()} == before


def test_cache_that_is_not_there_is_no_fault(tmp_path):
    assert not prune(tmp_path / "none")["changed"]
