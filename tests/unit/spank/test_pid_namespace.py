"""The PID namespace of a job's tasks: what is noted, and when it is entered; the kernel's part is tested as root."""

import os
import signal
import subprocess
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from tests.support.wait import wait
from tests.unit.spank.conftest import READY
from tests.unit.spank.fake_daemon import ok

JOB = {"SLURM_JOB_USER": "alice", "SLURM_JOB_NODELIST": "c1", "HOST_OPTION": ""}
SEEN = ("unshare", "setns", "mount proc", "mount sysfs")


@pytest.fixture
def init(plugin):
    return f"init={plugin.library.parent / 'isthmus_init'}"


def first(plugin):
    return int(plugin.record("7.init").split()[0])


def ended(pid):
    """Whether it has, or is a zombie that the machine's first process has not seen yet."""
    with suppress(FileNotFoundError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    return True


@pytest.fixture
def prepared(plugin, daemon, init):
    """A job whose prolog has made one; ended by its epilog."""
    daemon(job_prepare=ok(state="preparing"), job_release=ok())
    assert plugin.run("prolog", init, **JOB).logged == ""
    yield first(plugin)
    plugin.run("epilog", init, HOST_OPTION="")


@pytest.fixture
def began(plugin, daemon, init):
    """The same, for a job that has steps."""
    daemon(job_prepare=ok(state="preparing"), job_get=READY, job_release=ok())
    assert plugin.run("prolog", init, **JOB).logged == ""
    yield first(plugin)
    plugin.run("epilog", init, HOST_OPTION="")


def steps(reported):
    return [line for line in reported if line.startswith(SEEN)]


def comm(pid):
    return Path(f"/proc/{pid}/comm").read_text().strip()


def test_first_process_lives_from_prolog_to_epilog(plugin, prepared, init):
    assert comm(prepared) == "isthmus_init"
    assert os.getsid(prepared) == prepared
    assert [os.readlink(file) for file in Path(f"/proc/{prepared}/fd").iterdir()] == ["/dev/null"] * 3
    assert (plugin.folder / "spank/7.init").stat().st_mode & 0o777 == 0o600
    plugin.run("epilog", init, HOST_OPTION="")
    wait(partial(ended, prepared))
    assert plugin.record("7.init") is None


def test_only_what_is_forked_for_tasks_is_in_it(plugin, began):
    reported = plugin.run("step", HOST_TASKS="2", HOST_OPTION="").reported
    # Slurm's process enters and returns; each task then has its own /proc before its own /sys.
    task = ["unshare mounts", "setns net", "mount proc /proc", "mount sysfs /sys"]
    assert steps(reported) == ["setns pids", "setns pids", *task, *task]
    assert reported.count("task=0") == 2


def test_prolog_itself_returns(plugin, daemon, init):
    daemon(job_prepare=ok(state="preparing"), job_release=ok())
    assert steps(plugin.run("prolog", init, **JOB).reported) == ["unshare pids", "setns pids"]
    plugin.run("epilog", init, HOST_OPTION="")


def test_job_began_without_one_goes_on_without(plugin, daemon, init):
    daemon(job_get=READY)
    reported = plugin.run("step", init, HOST_OPTION="").reported
    assert "setns pids" not in reported
    assert "mount proc /proc" not in reported
    assert "task=0" in reported


@pytest.mark.parametrize("words", [(), ("default=none",)])
def test_job_without_a_network_has_none(plugin, init, words):
    assert plugin.run("prolog", init, *words, SLURM_JOB_USER="alice").reported == ["rc=0"]
    assert plugin.record("7.init") is None


def test_job_whose_namespace_has_ended_is_refused(plugin, began):
    os.kill(began, signal.SIGKILL)
    wait(partial(ended, began))
    result = plugin.run("step", HOST_OPTION="")
    assert "task=1" in result.reported
    assert "its PID namespace has ended, and all that ran there; submit the job again" in result.errors[-1]


@pytest.mark.parametrize("note", ["{} 1", "{} x", "{}", "-1 5", "99999999999999999999 5"])
def test_process_that_got_the_number_later_is_neither_entered_nor_killed(plugin, daemon, note):
    daemon(job_get=READY, job_release=ok())
    with subprocess.Popen(["sleep", "60"]) as other:
        plugin.record("7.init", note.format(other.pid))
        result = plugin.run("step", HOST_OPTION="")
        assert "task=1" in result.reported
        assert "setns pids" not in result.reported
        plugin.run("epilog", HOST_OPTION="")
        assert other.poll() is None
        other.kill()


@pytest.mark.parametrize(
    ("why", "reason"),
    [
        ({"HOST_FAIL": "unshare pids"}, "no PID namespace can be made: Operation not permitted"),
        (
            {},
            "/none cannot be started: No such file or directory; an administrator must run playbooks/network.yml",
        ),
    ],
)
def test_namespace_that_cannot_be_made_fails_the_job_and_not_the_node(plugin, daemon, init, why, reason):
    daemon(job_prepare=ok(state="preparing"), job_get=READY)
    result = plugin.run("prolog", init if why else "init=/none", **JOB, **why)
    assert result.reported[-1] == "rc=0"
    assert result.errors == [f"isthmus: job 7 has no pod network here: {reason}"]
    result = plugin.run("step", HOST_OPTION="")
    assert "task=1" in result.reported
    assert reason in result.errors[-1]


def test_task_that_slurm_forked_elsewhere_is_refused(plugin, began):
    result = plugin.run("step", HOST_OPTION="", HOST_CONTAIN="1")
    assert "task=1" in result.reported
    assert "an administrator must take contain_spank out of SlurmdParameters" in result.errors[-1]


@pytest.mark.parametrize("entry", ["pids", "proc"])
def test_task_that_cannot_enter_is_not_run(plugin, began, tmp_path, entry):
    result = plugin.run("step", HOST_OPTION="", HOST_FAIL=entry, HOST_COMMAND=f"touch {tmp_path}/ran")
    assert "task=1" in result.reported
    assert not (tmp_path / "ran").exists()
    assert "Operation not permitted" in result.errors[-1]


def test_prolog_of_the_same_job_ends_what_was_there(plugin, daemon, init):
    daemon(job_prepare=[ok(state="preparing")] * 2, job_release=ok())
    numbers = []
    for _ in range(2):
        plugin.run("prolog", init, **JOB)
        numbers.append(first(plugin))
    wait(partial(ended, numbers[0]))
    assert comm(numbers[1]) == "isthmus_init"
    plugin.run("epilog", init, HOST_OPTION="")
