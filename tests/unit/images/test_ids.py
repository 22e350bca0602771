"""Who has subordinate ids, and who has none."""

import os
import pwd

import pytest

from isthmus.images import ids

NAME = pwd.getpwuid(os.getuid()).pw_name


@pytest.mark.parametrize(
    ("uids", "gids", "alone"),
    [
        (f"{NAME}:100000:65536", f"{NAME}:100000:65536", False),
        (f"{os.getuid()}:100000:65536", f"{NAME}:100000:65536", False),
        (f"{NAME}:100000:65536", "another:100000:65536", True),
        (f"{NAME}:100000:0", f"{NAME}:100000:0", True),
        ("", "", True),
        ("no line", f"{NAME}:x:y", True),
    ],
)
def test_both_files_must_name_the_user(tmp_path, uids, gids, alone):
    (tmp_path / "subuid").write_text(f"{uids}\n")
    (tmp_path / "subgid").write_text(f"{gids}\n")
    assert ids.is_root_alone((tmp_path / "subuid", tmp_path / "subgid")) is alone


def test_no_file_is_no_ids(tmp_path):
    assert ids.is_root_alone((tmp_path / "none",))
