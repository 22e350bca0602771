"""The PID namespace of a job on the real kernel: its tasks, steps, sessions and their ends."""

import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from tests.integration.spank.test_namespace import LAYOUTS, below, node, part, pod
from tests.support.wait import wait
from tests.unit.spank.conftest import READY
from tests.unit.spank.fake_daemon import ok

__all__ = ["node", "pod"]
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="namespaces and mounts need root")
NOBODY = "65534"
WHERE = "readlink /proc/self/ns/pid"
REAL = {"HOST_FAKE": ""}
JOB = {"SLURM_JOB_USER": "alice", "SLURM_JOB_NODELIST": "c1", "HOST_OPTION": "", **REAL}


@pytest.fixture
def job(plugin, daemon, pod):
    """The first process of a job whose prolog ran; its epilog ends it."""
    daemon(job_prepare=ok(state="preparing"), job_get=READY | {"netns": str(pod)}, job_release=ok())
    word = f"init={plugin.library.parent / 'isthmus_init'}"
    assert plugin.run("prolog", word, **JOB).logged == ""
    yield int(plugin.record("7.init").split()[0])
    epilog(plugin)


def epilog(plugin):
    plugin.run("epilog", HOST_OPTION="", **REAL)


def run_step(plugin, command, **environment):
    result = plugin.run("step", HOST_OPTION="", HOST_COMMAND=command, HOST_AS=NOBODY, **REAL, **environment)
    assert result.logged == ""
    return result.reported


def namespaces(reported):
    return {line for line in reported if line.startswith("pid:[")}


def test_tasks_of_all_steps_share_one_and_the_node_keeps_its_own(plugin, job):
    seen = run_step(plugin, f"{WHERE}; id -u", HOST_TASKS="3")
    own = os.readlink("/proc/self/ns/pid")
    assert namespaces(seen) == {os.readlink(f"/proc/{job}/ns/pid")}
    assert seen.count("task=0") == seen.count(NOBODY) == 3
    assert namespaces(run_step(plugin, WHERE)) == namespaces(seen) != {own}


def test_slurmstepd_can_begin_threads_again(plugin, job):
    """It could not while what it forks is elsewhere (clone(2), EINVAL); a sanitizer's leak check is a thread, too."""
    assert run_step(plugin, "true")[-1] == "exit=0"


def test_task_sees_its_job_alone(plugin, job):
    show = "echo =self; echo $$; readlink /proc/self; echo =all; cat /proc/[0-9]*/comm; echo =end"
    reported = run_step(plugin, show)
    ((number, shown),) = part(reported, "self")
    assert 1 < int(number) < int(shown) < 100
    ((*all_of_them,),) = part(reported, "all")
    assert sorted(set(all_of_them)) == ["isthmus_init", "sh"]


def test_orphans_are_reaped_and_live_on_until_the_epilog(plugin, job):
    run_step(plugin, "for each in 1 2 3; do (sleep 0.1 &); done; (setsid sleep 613 >/dev/null 2>&1 &)")

    def children():
        text = Path(f"/proc/{job}/task/{job}/children").read_text()
        return [Path(f"/proc/{pid}/comm").read_text().strip() for pid in text.split()]

    wait(children, lambda found: found == ["sleep"])
    epilog(plugin)
    wait(lambda: subprocess.run(["pgrep", "-f", "^sleep 613$"], check=False).returncode, bool)


def test_user_cannot_end_the_first_process(plugin, job):
    run_step(plugin, "kill -KILL 1 2>/dev/null || kill -TERM 1 2>/dev/null || kill -CHLD 1 2>/dev/null || true")
    assert namespaces(run_step(plugin, WHERE))


def test_user_cannot_look_below_the_cover(plugin, job):
    """The node's /proc is still mounted there."""
    root = "unshare --user --map-root-user --mount"
    reported = run_step(plugin, f"{root} umount /proc 2>/dev/null || {root} umount -l /proc 2>/dev/null || echo kept")
    assert "kept" in reported


def test_tracing_and_signals_between_the_jobs_own_processes(plugin, job):
    trace = (
        "import ctypes, os, signal; libc = ctypes.CDLL(None, use_errno=True); pid = os.fork()\n"
        "if not pid: signal.pause()\n"
        "assert libc.ptrace(16, pid, None, None) == 0, os.strerror(ctypes.get_errno())\n"
        "assert os.WIFSTOPPED(os.waitpid(pid, 0)[1]); assert libc.ptrace(17, pid, None, None) == 0\n"
        "os.kill(pid, signal.SIGUSR1); print('ended by', os.waitpid(pid, 0)[1])"
    )
    assert "ended by 10" in run_step(plugin, f'/usr/bin/python3 -c "{trace}"')


def test_memory_of_one_rank_is_read_by_another(plugin, job):
    """As MPI's shared memory transports do (process_vm_readv(2)), by the ids that they exchange."""
    read = (
        "import ctypes, os; libc = ctypes.CDLL(None, use_errno=True)\n"
        "class Part(ctypes.Structure): _fields_ = [('at', ctypes.c_void_p), ('size', ctypes.c_size_t)]\n"
        "there = ctypes.create_string_buffer(b'of the rank'); pid = os.fork()\n"
        "if not pid: os.read(os.pipe()[0], 1)\n"
        "here = ctypes.create_string_buffer(16)\n"
        "parts = Part(ctypes.addressof(here), 11), Part(ctypes.addressof(there), 11)\n"
        "assert libc.process_vm_readv(pid, ctypes.byref(parts[0]), 1, ctypes.byref(parts[1]), 1, 0) == 11\n"
        "os.kill(pid, 9); print(here.value.decode())"
    )
    assert "of the rank" in run_step(plugin, f'/usr/bin/python3 -c "{read}"')


@pytest.mark.parametrize("layout", LAYOUTS)
def test_mounts_below_proc_stay(node, daemon, pod, plugin, layout):
    daemon(job_prepare=ok(state="preparing"), job_get=READY | {"netns": str(pod)}, job_release=ok())
    plugin.run("prolog", f"init={plugin.library.parent / 'isthmus_init'}", **JOB)
    result = run_on(node(layout))
    epilog(plugin)
    assert result.logged == ""
    before, within, after = (part(result.reported, "mounts")[i] for i in range(3))
    proc, then = below(before, "/proc"), below(within, "/proc")
    assert then.pop("/proc")[1] == proc.pop("/proc")[1]
    assert then == proc
    assert below(after, "/proc") == below(before, "/proc")


def run_on(node):
    show = "echo =mounts; cat /proc/self/mountinfo; echo =end"
    return node.run("step", HOST_OPTION="", HOST_COMMAND=show, **REAL)


def test_no_process_of_the_job_is_left_when_its_first_one_is_killed(plugin, job):
    run_step(plugin, "(setsid sleep 614 >/dev/null 2>&1 &)")
    os.kill(job, 9)
    wait(lambda: subprocess.run(["pgrep", "-f", "^sleep 614$"], check=False).returncode, bool)
    result = plugin.run("step", HOST_OPTION="", HOST_COMMAND="true", **REAL)
    assert "task=1" in result.reported
    assert "its PID namespace has ended" in result.errors[-1]


@pytest.fixture
def apptainer(plugin):
    """A program in its place that a user without rights may start."""
    with tempfile.TemporaryDirectory(prefix="isthmus-test-") as folder:
        Path(folder).chmod(0o755)
        hold = shutil.copy(plugin.library.parent / "isthmus_hold", folder)
        script = Path(folder, "apptainer")
        script.write_text(f"#!/bin/sh\nexec unshare --user --map-root-user --mount {hold}\n")
        script.chmod(0o755)
        yield script


def test_container_of_a_step_ends_with_it(plugin, job, apptainer):
    """Its processes are noted by the tasks' numbers, which are others on the node."""
    plan = {
        "schema": 1,
        "command": [str(apptainer)],
        "environment": [f"PATH={os.environ['PATH']}"],
        "kept": [],
        "entrypoint": [],
        "workdir": "/",
    }
    environment = {"HOST_CONTAINER": "container-image=debian:13", "ISTHMUS_STEP_CONTAINER": json.dumps(plan)}
    count = "cat /proc/[0-9]*/comm | grep -c isthmus_hold"
    assert "1" in run_step(plugin, count, HOST_TASKS="2", HOST_UID=NOBODY, **environment)
    assert "0" in run_step(plugin, f"{count}; true")
