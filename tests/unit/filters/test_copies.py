import grp
import os
import pwd
import subprocess

import pytest

from isthmus.filters.copies import folders, outdated, question

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
    told = subprocess.run(["sh", "-c", question(copies)], check=True, capture_output=True, text=True).stdout
    # A terminal ends lines otherwise.
    return outdated(copies, told.replace("\n", "\r\n"))


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


def test_folders_that_lack_are_open_to_read(copy, tmp_path):
    place = tmp_path / "two folders/deep/file"
    subprocess.run(["sh", "-c", folders([copy, copy | {"dest": str(place)}])], check=True)
    assert place.parent.stat().st_mode & 0o777 == 0o755
