"""Which folders of released volumes are removed."""

import pytest

from isthmus.kubelet.objects.claims import is_made


@pytest.mark.parametrize(
    ("path", "made"),
    [("shop-data-1234", True), ("..", False), ("../other", False), ("a/../../..", False), ("a/b", False), (".", False)],
)
def test_only_a_folder_right_below_is_removed(tmp_path, path, made):
    assert is_made(tmp_path / path, tmp_path) == made


def test_link_is_not_followed(tmp_path):
    (tmp_path / "link").symlink_to("/")
    assert not is_made(tmp_path / "link", tmp_path)
