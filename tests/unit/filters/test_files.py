import pytest

from isthmus.filters.files import files_block, files_removed, files_with_block, files_written

MARK = "# {mark} mine"
MARKED = "a\n# BEGIN mine\nold\n# END mine\nb\n"


def test_contents_become_entries_in_their_order():
    entries = files_written({"/b": "1", "/a": ""})
    assert entries == [{"path": "/b", "content": "1"}, {"path": "/a", "content": ""}]


def test_paths_become_entries_that_remove():
    assert files_removed(["/a"]) == [{"path": "/a", "state": "absent"}]


@pytest.mark.parametrize(("text", "block"), [("", ""), ("a\n# BEGIN mine\n", ""), (MARKED, "old\n")])
def test_block_is_what_is_between_both_marks(text, block):
    assert files_block(text, MARK) == block


@pytest.mark.parametrize(
    ("text", "block", "whole"),
    [
        ("a\n", "x\n", "a\n# BEGIN mine\nx\n# END mine\n"),
        (MARKED, "x", "a\n# BEGIN mine\nx\n# END mine\nb\n"),
        (MARKED, "", "a\nb\n"),
        ("a\n", "", "a\n"),
    ],
)
def test_block_comes_into_its_old_place_or_to_the_end_and_the_rest_stays(text, block, whole):
    assert files_with_block(text, MARK, block) == whole
    assert files_with_block(whole, MARK, block) == whole
