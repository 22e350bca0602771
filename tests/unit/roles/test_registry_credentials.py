"""The module registry_credentials: a user's other entries stay, and nothing he made leads elsewhere."""

import json
import os
import pwd
import time
from base64 import b64encode

import pytest

from tests.support import ansible_modules

ADDRESS = "ctl:5000"
ENTRY = {"auth": b64encode(b"alice:secret").decode()}


@pytest.fixture(scope="module")
def module():
    return ansible_modules.load("roles/registry/library/registry_credentials.py")


@pytest.fixture
def path(tmp_path):
    return tmp_path / ".apptainer/docker-config.json"


@pytest.fixture
def keep(module, path):
    return lambda dry=False: module.keep(path, ADDRESS, "alice:secret", dry=dry)


def test_new_file_is_the_users_alone(keep, path):
    assert keep()
    assert json.loads(path.read_text()) == {"auths": {ADDRESS: ENTRY}}
    assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert not keep()


def test_other_entries_stay(keep, path):
    path.parent.mkdir()
    path.write_text(json.dumps({"auths": {"elsewhere": {"auth": "x"}}, "credHelpers": {}}))
    assert keep()
    assert json.loads(path.read_text()) == {"auths": {"elsewhere": {"auth": "x"}, ADDRESS: ENTRY}, "credHelpers": {}}


def test_open_file_is_closed(keep, path):
    keep()
    path.chmod(0o644)
    assert keep()
    assert path.stat().st_mode & 0o777 == 0o600


def test_check_run_writes_nothing(keep, path):
    assert keep(dry=True)
    assert not path.parent.exists()


@pytest.mark.parametrize("text", ["no json", "[]", '{"auths": []}', '"text"'])
def test_file_that_is_something_else_is_left_alone(module, keep, path, text):
    path.parent.mkdir()
    path.write_text(text)
    with pytest.raises(module.UnusableError):
        keep()
    assert path.read_text() == text


def test_pipe_does_not_keep_the_playbook_waiting(module, keep, path):
    path.parent.mkdir()
    os.mkfifo(path)
    with pytest.raises(module.UnusableError):
        keep()


def test_home_that_hangs_is_left(module):
    begin = time.monotonic()
    with pytest.raises(module.UnusableError, match="does not answer"):
        module.as_user(pwd.getpwuid(os.getuid()), lambda: time.sleep(60), patience_s=0.2)
    assert time.monotonic() - begin < 30


@pytest.mark.parametrize("changed", [True, False])
def test_child_reports_whether_a_file_changed(module, changed):
    assert module.as_user(pwd.getpwuid(os.getuid()), lambda: changed) is changed


def test_problem_in_the_home_is_reported(module):
    def work():
        raise module.UnusableError("it is no file")

    with pytest.raises(module.UnusableError, match="it is no file"):
        module.as_user(pwd.getpwuid(os.getuid()), work)
