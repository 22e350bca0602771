"""One run at a time: another one is refused while it lives, and one that was killed holds nothing up."""

import os
import subprocess
from types import SimpleNamespace

import pytest

from tests.support import ansible_modules

ALONE = ansible_modules.load("action_plugins/run_alone.py")


def take(file):
    """Run the task as a worker of this test's parent."""
    task = SimpleNamespace(
        args={"file": str(file), "what": "upgrade of dev"}, async_val=0, check_mode=False, diff=False
    )
    connection = SimpleNamespace(_shell=SimpleNamespace(tmpdir=None))
    action = ALONE.ActionModule(task, connection, SimpleNamespace(check_mode=False), None, None, None)
    return action.run(task_vars={})


@pytest.fixture
def another():
    """A process that has nothing to do with this one."""
    process = subprocess.Popen(["sleep", "600"])
    yield process.pid
    process.kill()
    process.wait()


@pytest.fixture
def file(tmp_path):
    return tmp_path / "upgrade/running"


def held_by(file, process, began):
    file.parent.mkdir(parents=True)
    file.write_text(f"{process} {began}\n")


def test_first_run_takes_it_and_may_take_it_again(file):
    for _ in range(2):
        assert not take(file).get("failed")
        assert file.read_text().split() == [str(os.getppid()), ALONE.began(os.getppid())]
    assert [path.name for path in file.parent.iterdir()] == ["running"]


def test_second_run_is_refused_with_the_remedy(file, another):
    held_by(file, another, ALONE.began(another))
    before = file.read_text()
    refused = take(file)
    assert refused["failed"]
    assert refused["msg"] == (
        f"another upgrade of dev runs as process {another}; wait for its end, or end it: kill {another}"
    )
    assert file.read_text() == before


@pytest.mark.parametrize("began", ["1", "x"], ids=["its number is another's now", "no time"])
def test_run_that_was_killed_holds_nothing_up(file, another, began):
    held_by(file, another, began)
    assert not take(file).get("failed")


@pytest.mark.parametrize("text", ["", "x", "1 2 3", "-1 0", "99999999999999999999 1"])
def test_file_that_was_cut_off_holds_nothing_up(file, text):
    file.parent.mkdir(parents=True)
    file.write_text(text)
    assert not take(file).get("failed")
