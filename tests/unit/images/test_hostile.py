"""What hostile images, and what lies in the way, become for the user: one error each, and nothing half-written."""

import os

import pytest

from isthmus.clients import confined
from isthmus.clients.process import ProcessError
from isthmus.images import errors, pull
from isthmus.model import images
from tests.support.fakes.image_tools import DIGEST, REGISTRY, FakeTools

IMAGE = images.parse(f"{REGISTRY}/isthmus/busybox")
UNPACKED = {
    "anything": ("FATAL: unpack entry: h: no such file or directory", 255, "cannot be unpacked; "),
    "no namespaces": ("images cannot be unpacked safely here: x; it needs", confined.STATUS, "unpacked safely here"),
    "a full disk": ("FATAL: write: no space left on device", 255, "no space is left in /scratch; "),
}


@pytest.fixture
def place(tmp_path):
    (tmp_path / "scratch").mkdir()
    return pull.Workspace(tmp_path / ".isthmus/images", tmp_path / "scratch", None, "amd64")


@pytest.mark.parametrize("case", UNPACKED)
def test_failure_to_unpack_names_image_and_entry(case):
    stderr, status, reported = UNPACKED[case]
    with pytest.raises(errors.ImageError) as refused, errors.unpacking(IMAGE, "/scratch"):
        raise ProcessError("apptainer", status, "failed", "", stderr)
    assert reported in str(refused.value)
    assert "; " in str(refused.value)


@pytest.mark.parametrize(
    ("lay", "reported"),
    [
        (lambda file: file.mkdir(), "it is no file; "),
        (os.mkfifo, "it is no file; "),
        (lambda file: file.symlink_to("/dev"), "it is no file; "),
    ],
)
@pytest.mark.parametrize("what", ["image", "credentials", "lock"])
def test_what_is_no_file_is_refused_at_once(monkeypatch, place, tmp_path, what, lay, reported):
    FakeTools().stand_in(monkeypatch)
    path = pull.Cache(place.cache).path(DIGEST)
    lay(
        {"image": path, "credentials": tmp_path / "auth", "lock": path.with_name(f".{DIGEST.replace(':', '-')}.lock")}[
            what
        ]
    )
    authfile = tmp_path / "auth" if what == "credentials" else None
    with pytest.raises(errors.ImageError, match=reported if what != "lock" else "; "):
        pull.pull(IMAGE, pull.Workspace(place.cache, place.scratch, authfile, "amd64"), lambda _: None)
    assert list(place.scratch.iterdir()) == []


@pytest.mark.parametrize(("link", "reported"), [("/usr", "it is another user's; "), ("/none", "File exists; ")])
def test_cache_that_leads_to_anothers_folder_is_refused(monkeypatch, place, link, reported):
    monkeypatch.setattr(os, "geteuid", lambda: place.scratch.stat().st_uid + (link == "/usr"))
    place.cache.parent.mkdir()
    place.cache.symlink_to(link)
    with pytest.raises(errors.ImageError, match=reported):
        pull.pull(IMAGE, place, lambda _: None)


def test_open_cache_is_closed(place):
    place.cache.mkdir(parents=True)
    place.cache.chmod(0o777)
    assert pull.Cache(place.cache).folder.stat().st_mode & 0o777 == 0o700
