import grp
import os
import pwd
import shutil
import subprocess

import pytest

from isthmus.filters.copies import outdated, pack, placing, question

OWNER = pwd.getpwuid(os.getuid()).pw_name
GROUP = grp.getgrgid(os.getgid()).gr_name


@pytest.fixture
def copy(tmp_path):
    (tmp_path / "source").write_text("1")
    (tmp_path / "here it is").write_text("1")
    (tmp_path / "here it is").chmod(0o640)
    places = {"src": str(tmp_path / "source"), "dest": str(tmp_path / "here it is")}
    return places | {"owner": OWNER, "group": GROUP, "mode": "0640"}


def lacks(*copies):
    reported = subprocess.run(["sh", "-c", question(copies)], check=True, capture_output=True, text=True).stdout
    # A terminal ends lines otherwise.
    return outdated(copies, reported.replace("\n", "\r\n"))


def test_copy_that_is_there_is_not_brought_again(copy):
    assert lacks(copy) == []


def test_absent_copy_is_brought(copy, tmp_path):
    absent = copy | {"dest": str(tmp_path / "absent")}
    assert lacks(copy, absent) == [absent]


def test_other_content_is_brought(copy, tmp_path):
    (tmp_path / "source").write_text("2")
    assert lacks(copy) == [copy]


@pytest.mark.parametrize("other", [{"mode": "0600"}, {"owner": "nobody"}, {"group": "nogroup"}])
def test_other_rights_are_brought_about(copy, other):
    wanted = copy | other
    assert lacks(wanted) == [wanted]


def test_source_that_is_gone_is_left_to_the_copy_which_says_so(copy, tmp_path):
    (tmp_path / "source").unlink()
    assert lacks(copy) == [copy]


def bring(tmp_path, *copies):
    archive = tmp_path / "an archive.tar"
    if len(copies) == 1:
        shutil.copyfile(copies[0]["src"], archive)
    else:
        with archive.open("wb") as file:
            pack(copies, file)
    return subprocess.run(["sh", "-c", placing(copies, str(archive))], check=False, capture_output=True, text=True)


def test_all_that_lacks_is_brought_at_once(copy, tmp_path):
    (tmp_path / "program").write_bytes(b"\0" * 2_000_000)
    program = copy | {"src": str(tmp_path / "program"), "dest": str(tmp_path / "bin/it's"), "mode": "0755"}
    secret = copy | {"src": str(tmp_path / "source"), "dest": str(tmp_path / "two folders/deep/file"), "mode": "0600"}
    assert bring(tmp_path, program, secret).returncode == 0
    assert lacks(program, secret) == []
    assert (tmp_path / "two folders/deep").stat().st_mode & 0o777 == 0o755


def test_link_in_a_files_place_is_replaced_not_followed(copy, tmp_path):
    other = tmp_path / "other"
    other.write_text("another's")
    link = tmp_path / "here it is"
    link.unlink()
    link.symlink_to(other)
    assert bring(tmp_path, copy).returncode == 0
    assert (other.read_text(), link.is_symlink(), lacks(copy)) == ("another's", False, [])


def test_what_a_cut_run_left_is_no_obstacle(copy, tmp_path):
    (tmp_path / ".here it is.new").write_text("half")
    (tmp_path / "source").write_text("2")
    assert bring(tmp_path, copy).returncode == 0
    assert lacks(copy) == []
    assert not (tmp_path / ".here it is.new").exists()


def test_copy_that_fails_leaves_what_was_there(copy, tmp_path):
    (tmp_path / "source").write_text("2")
    reported = bring(tmp_path, copy | {"owner": "nobody-has-this-name"})
    assert reported.returncode != 0
    assert "nobody-has-this-name" in reported.stderr
    assert (tmp_path / "here it is").read_text() == "1"


def test_source_that_is_gone_is_named(copy, tmp_path):
    (tmp_path / "source").unlink()
    with pytest.raises(FileNotFoundError, match="source"):
        bring(tmp_path, copy, copy)
