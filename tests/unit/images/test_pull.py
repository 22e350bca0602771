"""Pulls against strict fakes of the programs they start; tests/system/apptainer has the same cases live."""

import errno
import fcntl
import os
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from isthmus.images import errors, pull
from isthmus.model import images
from tests.support.fakes.image_tools import DIGEST, REFUSALS, REGISTRY, FakeTools

IMAGE = images.parse(f"{REGISTRY}/isthmus/busybox")


@pytest.fixture
def tools(monkeypatch):
    fake = FakeTools()
    fake.stand_in(monkeypatch)
    yield fake
    assert fake.calls, "nothing was asked of the fake"


@pytest.fixture
def place(tmp_path):
    (tmp_path / "scratch").mkdir()
    return pull.Workspace(tmp_path / ".isthmus/images", tmp_path / "scratch", None, "amd64")


def left(place):
    """What lies in both folders, but for locks and layers."""
    names = [path.name for folder in (place.cache, place.scratch) for path in folder.iterdir()]
    return [name for name in names if not name.endswith(".lock") and name != ".layers"]


def is_whole(path):
    return path.read_bytes().startswith(b"hsqs")


def quiet(_):
    pass


def test_image_becomes_one_file_of_its_owner(tools, place):
    pulled = pull.pull(IMAGE, place, quiet)
    assert (pulled.digest, pulled.cached, is_whole(pulled.path)) == (DIGEST, False, True)
    assert left(place) == [f"{DIGEST.replace(':', '-')}.2.squashfs"]
    assert {path.stat().st_mode & 0o777 for path in (place.cache, place.cache.parent)} == {0o700}


def test_second_pull_takes_what_is_there(tools, place):
    first = pull.pull(IMAGE, place, quiet)
    second = pull.pull(IMAGE, place, quiet)
    assert (second.path, second.cached) == (first.path, True)
    assert tools.count("apptainer") == 1


def test_known_digest_needs_no_registry(tools, place):
    pull.pull(IMAGE, place, quiet)
    asked = len(tools.calls)
    assert pull.pull(IMAGE.at(DIGEST), place, quiet).cached
    assert len(tools.calls) == asked


def test_pulls_at_once_work_once(tools, place):
    words = []
    with ThreadPoolExecutor(20) as pool:
        pulled = list(pool.map(lambda _: pull.pull(IMAGE, place, words.append), range(20)))
    assert sum(not each.cached for each in pulled) == 1
    assert (tools.count("skopeo", "copy"), tools.count("apptainer")) == (1, 1)


def test_other_processes_see_the_lock(tools, place):
    lock = place.cache / f".{DIGEST.replace(':', '-')}.lock"
    taken = ["flock", "--nonblock", lock, "true"]
    seen = []
    tools.while_making = lambda: seen.append(subprocess.run(taken, check=False).returncode)
    pull.pull(IMAGE, place, quiet)
    assert seen == [1]
    assert subprocess.run(taken, check=False).returncode == 0


@pytest.fixture(params=[errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP], ids=errno.errorcode.get)
def no_locks(monkeypatch, request):
    """A home, and all else, without locks."""

    def flock(file, how):
        raise OSError(request.param, os.strerror(request.param))

    monkeypatch.setattr(fcntl, "flock", flock)


def test_home_without_locks_gets_the_image(tools, place, no_locks):
    first, second = pull.pull(IMAGE, place, quiet), pull.pull(IMAGE, place, quiet)
    assert (first.cached, second.cached, is_whole(second.path)) == (False, True, True)
    assert left(place) == [first.path.name]


def test_image_that_another_made_meanwhile_stays_the_same_file(tools, place, no_locks):
    path = pull.Cache(place.cache).path(DIGEST)
    tools.while_making = lambda: path.write_text("theirs")
    pull.pull(IMAGE, place, quiet)
    assert (path.read_text(), left(place)) == ("theirs", [path.name])


def test_pulls_at_once_without_locks_do_not_meet(tools, place, no_locks):
    with ThreadPoolExecutor(8) as pool:
        pulled = list(pool.map(lambda _: pull.pull(IMAGE, place, quiet), range(8)))
    assert all(is_whole(each.path) for each in pulled)
    assert left(place) == [pulled[0].path.name]


@pytest.mark.parametrize(("age_s", "stays"), [(60, True), (2 * 24 * 3600, False)])
def test_old_leftover_goes_without_locks(tools, place, no_locks, age_s, stays):
    other = pull.Cache(place.cache).folder / f".{DIGEST.replace(':', '-')}.2.squashfs.0123456789abcdef.part"
    other.write_text("half")
    os.utime(other, (time.time() - age_s,) * 2)
    pull.pull(IMAGE, place, quiet)
    assert other.exists() is stays


@pytest.mark.parametrize("program", ["skopeo", "apptainer"])
def test_full_disk_leaves_nothing(tools, place, program):
    tools.full = {program}
    with pytest.raises(errors.NoSpaceError, match=f"no space is left in {place.cache} or {place.scratch}"):
        pull.pull(IMAGE, place, quiet)
    assert left(place) == []
    tools.full = set()
    assert not pull.pull(IMAGE, place, quiet).cached


def test_leftover_of_a_killed_pull_is_replaced(tools, place):
    half = pull.Cache(place.cache).folder / f".{DIGEST.replace(':', '-')}.2.squashfs.part"
    half.write_text("half")
    assert is_whole(pull.pull(IMAGE, place, quiet).path)
    assert not half.exists()


@pytest.mark.parametrize("case", REFUSALS.values(), ids=REFUSALS)
def test_refusal_reports_why(tools, place, case):
    names = {"registry": REGISTRY, "host": "ctl"}
    image = images.parse(case.image.format(**names))
    with_authfile = pull.Workspace(place.cache, place.scratch, Path(case.authfile) if case.authfile else None, "amd64")
    with pytest.raises(errors.ImageError) as refused:
        pull.pull(image, with_authfile, quiet)
    assert case.reported.format(**names) in str(refused.value)
    assert "; " in str(refused.value)
    assert left(place) == []


def test_folder_of_another_is_named(tmp_path):
    (tmp_path / ".isthmus").touch()
    with pytest.raises(errors.ImageError, match=r"\.isthmus: File exists"):
        pull.pull(IMAGE, pull.Workspace(tmp_path / ".isthmus/images", tmp_path, None, "amd64"), quiet)
