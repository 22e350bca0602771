"""The module host_commands: all in their order, and none after one that failed."""

import pytest

from tests.support import ansible_modules


@pytest.fixture
def run(tmp_path):
    module = ansible_modules.load("library/host_commands.py")
    return lambda *commands, **other: ansible_modules.run(module, commands=list(commands), **other)


def append(path, word):
    return ["sh", "-c", f'printf %s "$0" >>{path}', word]


def test_commands_run_in_their_order(run, tmp_path):
    reported = run(append(tmp_path / "said", "a"), append(tmp_path / "said", "b c"))
    assert (reported["changed"], len(reported["done"]), (tmp_path / "said").read_text()) == (True, 2, "ab c")


def test_nothing_follows_a_failure_which_is_reported(run, tmp_path):
    reported = run(
        append(tmp_path / "said", "a"), ["sh", "-c", "echo no such user >&2; exit 3"], append(tmp_path / "said", "b")
    )
    assert reported["failed"]
    assert reported["msg"].endswith("failed: no such user")
    assert (len(reported["done"]), (tmp_path / "said").read_text()) == (1, "a")


def test_failure_without_a_word_reports_its_status(run):
    assert "status 3" in run(["sh", "-c", "exit 3"])["msg"]


def test_program_that_is_not_there_is_a_failure(run):
    assert run(["/no/such/program"])["failed"]


def test_check_run_runs_nothing(run, tmp_path):
    reported = run(append(tmp_path / "said", "a"), _ansible_check_mode=True)
    assert (reported["changed"], (tmp_path / "said").exists()) == (True, False)


def test_no_commands_are_no_change(run):
    assert not run()["changed"]
