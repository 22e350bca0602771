"""The module local_keys: a pair of keys that belong together, and the private one its owner's alone."""

import os
import subprocess

import pytest

from tests.support import ansible_modules


@pytest.fixture
def module():
    return ansible_modules.load("roles/provider_local/library/local_keys.py")


def derived(path):
    return subprocess.run(["ssh-keygen", "-y", "-f", path], check=True, capture_output=True, text=True).stdout.strip()


def test_keys_are_pairs_with_their_comments(module, tmp_path):
    keys = {str(tmp_path / name): f"isthmus {name}" for name in ("id_ed25519", "host_c1")}
    assert ansible_modules.run(module, keys=keys)["changed"]
    for path, comment in keys.items():
        public = (tmp_path / f"{path}.pub").read_text().strip()
        assert public == derived(path)
        assert public.endswith(f" {comment}")
        assert os.stat(path).st_mode & 0o777 == 0o600
    assert len(os.listdir(tmp_path)) == 4


def test_damaged_key_is_replaced(module, tmp_path):
    (tmp_path / "key").write_text("damaged")
    (tmp_path / "key.pub").write_text("of another")
    ansible_modules.run(module, keys={str(tmp_path / "key"): "new"})
    assert (tmp_path / "key.pub").read_text().strip() == derived(tmp_path / "key")


def test_check_run_makes_none(module, tmp_path):
    reported = ansible_modules.run(module, keys={str(tmp_path / "key"): "new"}, _ansible_check_mode=True)
    assert (reported["changed"], os.listdir(tmp_path)) == (True, [])


def test_folder_that_is_not_there_is_reported(module, tmp_path):
    assert ansible_modules.run(module, keys={str(tmp_path / "none/key"): "new"})["failed"]
