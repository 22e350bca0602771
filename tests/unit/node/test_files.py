import os
import stat

import pytest

from isthmus.node.errors import JoinError
from isthmus.node.files import Tree, edited, wanted


def entry(**values):
    owned = {"owner": "root", "group": "root"}
    return {"path": "/etc/a/file", "content": "one\n", **owned, **values}


@pytest.fixture
def tree(tmp_path):
    return Tree(tmp_path)


def mode(path):
    return stat.S_IMODE(path.lstat().st_mode)


def test_file_is_written_once_whatever_the_umask(tree, tmp_path):
    before = os.umask(0o077)
    try:
        assert tree.bring(wanted(entry(mode="0640")), check=False)
    finally:
        os.umask(before)
    assert (tmp_path / "etc/a/file").read_text() == "one\n"
    assert (mode(tmp_path / "etc/a"), mode(tmp_path / "etc/a/file")) == (0o755, 0o640)
    assert not tree.bring(wanted(entry(mode="0640")), check=False)
    assert os.listdir(tmp_path / "etc/a") == ["file"]


@pytest.mark.parametrize(
    "other", [{"content": "two"}, {"mode": "0600"}, {"state": "absent"}, {"state": "link", "target": "/b"}]
)
def test_what_differs_is_changed_and_then_right(tree, other):
    tree.bring(wanted(entry()), check=False)
    assert tree.bring(wanted(entry(**other)), check=False)
    assert not tree.bring(wanted(entry(**other)), check=False)


def test_check_changes_nothing(tree, tmp_path):
    assert tree.bring(wanted(entry()), check=True)
    assert not (tmp_path / "etc").exists()


def test_link_is_replaced_and_not_followed(tree, tmp_path):
    (tmp_path / "etc/a").mkdir(parents=True)
    (tmp_path / "elsewhere").write_text("kept")
    (tmp_path / "etc/a/file").symlink_to(tmp_path / "elsewhere")
    assert tree.bring(wanted(entry()), check=False)
    assert (tmp_path / "elsewhere").read_text() == "kept"
    assert not (tmp_path / "etc/a/file").is_symlink()


def test_bytes_are_written_as_they_are(tree, tmp_path):
    tree.bring(wanted({**entry(), "base64": "/wA="}), check=False)
    assert (tmp_path / "etc/a/file").read_bytes() == b"\xff\0"


def test_folder_in_the_way_is_refused_with_the_remedy(tree, tmp_path):
    (tmp_path / "etc/a/file").mkdir(parents=True)
    with pytest.raises(JoinError, match="is a folder; make this node from the image"):
        tree.bring(wanted(entry()), check=False)


@pytest.mark.parametrize("path", ["etc/a", "/etc/../../a", ""])
def test_path_that_is_no_place_is_refused(path):
    with pytest.raises(JoinError, match="no place"):
        wanted(entry(path=path))


def test_unknown_owner_is_refused_with_the_remedy(tree):
    with pytest.raises(JoinError, match="make this node from the image"):
        tree.bring(wanted(entry(owner="nobody-has-this-name")), check=False)


def test_block_is_put_behind_a_line_as_ansible_does():
    edit = {"path": "/p", "kind": "block", "mark": "# {mark} x", "block": "new\n", "after": "^@include a"}
    text = edited(edit, "@include a\n@include ab\nlast\n")
    assert text == "@include a\n@include ab\n# BEGIN x\nnew\n# END x\nlast\n"
    assert edited(edit, text) == text


def test_ranges_are_those_of_the_controller_and_others_stay():
    edit = {"path": "/etc/subuid", "kind": "subids", "users": ["alice"], "chosen": [], "count": 65536}
    text = edited({**edit, "first": "alice:100000:65536\n"}, "alice:5:5\ndebian:300000:65536\n")
    assert text == "debian:300000:65536\nalice:100000:65536\n"


def test_edit_of_another_version_is_refused():
    with pytest.raises(JoinError, match="make the image again"):
        edited({"path": "/p", "kind": "magic"}, "")
