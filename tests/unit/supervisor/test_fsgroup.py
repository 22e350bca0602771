"""The group of a volume's files: of a volume full of links and of files in others' hands."""

import os
import stat

import pytest

from isthmus.supervisor.volumes import fsgroup

GID = 54_321


@pytest.fixture
def volume(tmp_path):
    """A volume with a folder, files of several modes, and a link that leads out."""
    outside = tmp_path / "outside"
    outside.write_text("not the volume's")
    outside.chmod(0o600)
    whole = tmp_path / "volume"
    (whole / "sub/deep").mkdir(parents=True)
    for name, mode in (("read", 0o400), ("sub/run", 0o755), ("sub/deep/setid", 0o4711)):
        (whole / name).write_text(name)
        (whole / name).chmod(mode)
    (whole / "link").symlink_to(outside)
    (whole / "sub/up").symlink_to("../..")
    whole.chmod(0o700)
    return whole


def seen(path):
    found = path.lstat()
    return found.st_gid, stat.S_IMODE(found.st_mode)


def test_all_files_are_the_groups(volume):
    fsgroup.give(volume, GID)
    assert seen(volume) == (GID, 0o2770)
    assert seen(volume / "sub/deep") == (GID, 0o2775)
    assert seen(volume / "read") == (GID, 0o660)
    assert seen(volume / "sub/run") == (GID, 0o775)
    assert seen(volume / "sub/deep/setid") == (GID, 0o4771)


def test_no_link_is_followed(volume):
    before = seen(volume.parent / "outside"), seen(volume.parent)
    fsgroup.give(volume, GID)
    assert (seen(volume.parent / "outside"), seen(volume.parent)) == before


def test_kept_where_the_folder_has_it(volume):
    fsgroup.give(volume, GID, is_kept=True)
    assert seen(volume / "read") == (GID, 0o660)
    (volume / "read").chmod(0o400)
    fsgroup.give(volume, GID, is_kept=True)
    assert seen(volume / "read") == (GID, 0o400)
    fsgroup.give(volume, GID)
    assert seen(volume / "read") == (GID, 0o660)


def test_a_run_that_was_cut_off_is_done_again(volume, monkeypatch):
    def stop(descriptor, gid):
        raise OSError("cut off")

    with monkeypatch.context() as cut:
        cut.setattr(fsgroup, "_give", stop)
        with pytest.raises(OSError, match="cut off"):
            fsgroup.give(volume, GID, is_kept=True)
    fsgroup.give(volume, GID, is_kept=True)
    assert seen(volume / "sub/run") == (GID, 0o775)


def test_what_is_right_is_not_touched(volume):
    fsgroup.give(volume, GID)
    before = {path: path.lstat().st_ctime_ns for path in volume.rglob("*")}
    fsgroup.give(volume, GID)
    assert {path: path.lstat().st_ctime_ns for path in volume.rglob("*")} == before


@pytest.mark.parametrize("other", ["link", "pipe", "socket"])
def test_what_takes_a_files_place_is_left_as_it_is(volume, monkeypatch, other):
    real, outside = os.open, volume.parent / "outside"
    before = seen(outside)

    def racing(path, *words, **more):
        if path == "run" and stat.S_ISREG((volume / "sub/run").lstat().st_mode):
            (volume / "sub/run").unlink()
            if other == "link":
                (volume / "sub/run").symlink_to(outside)
            else:
                os.mknod(volume / "sub/run", 0o600 | (stat.S_IFIFO if other == "pipe" else stat.S_IFSOCK))
        return real(path, *words, **more)

    monkeypatch.setattr(os, "open", racing)
    fsgroup.give(volume, GID)
    assert seen(outside) == before
    assert seen(volume) == (GID, 0o2770)


def test_what_goes_meanwhile_is_left_out(volume, monkeypatch):
    real, gone = os.open, []

    def racing(path, *words, **more):
        if path == "run" and not gone:
            gone.append(path)
            (volume / "sub/run").unlink()
        return real(path, *words, **more)

    monkeypatch.setattr(os, "open", racing)
    fsgroup.give(volume, GID)
    assert gone
    assert seen(volume) == (GID, 0o2770)
