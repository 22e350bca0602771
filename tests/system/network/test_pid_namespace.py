"""Where a job with a network has a PID namespace, too: Slurm works as without, and tasks see their job alone."""

import shlex
from pathlib import Path

import pytest

from tests.support.clusters import jobs
from tests.support.clusters.sessions import inside
from tests.support.wait import wait

WHERE = "readlink /proc/self/ns/pid"
ALL = "cat /proc/[0-9]*/comm | sort -u | xargs"
ALLOCATE = "b = bytearray(80 << 20); import time; time.sleep(3)"
ATTACH = (
    "import ctypes, os, signal; trace = ctypes.CDLL(None).ptrace; pid = int(os.environ['OTHER'])\n"
    "assert trace(16, pid, None, None) == 0; assert os.WIFSTOPPED(os.waitpid(pid, 0x40000000)[1])\n"
    "assert trace(17, pid, None, None) == 0; os.kill(pid, signal.SIGUSR1); print('traced')"
)


@pytest.fixture(autouse=True, scope="module")
def namespaces(controller, login, user):
    """Only where the site has set network_pid_namespace; files of this module's jobs go."""
    folder = Path(jobs.settings(controller)["SLURM_CONF"]).parent
    if controller.run(f"grep -qs ' init=' {folder}/plugstack.conf.d/isthmus.conf").rc:
        pytest.skip("jobs have no PID namespace of their own here (network_pid_namespace)")
    yield
    login.run_as(user, "rm -f .isthmus-test-*")


@pytest.fixture
def batch(login, controller, user):
    """Run a batch job that must succeed; give its id and output."""

    def run(command, options="--mem=100"):
        job = jobs.submit(login, user, f"--pod-network {options}", command)
        jobs.wait_for_job(controller, job, "COMPLETED")
        return job, jobs.output(login, user, job)

    return run


def test_batch_script_and_steps_share_one_on_a_node(batch, two_computes):
    first, second = (node.name for node in two_computes)
    step = f"srun --overlap --nodes=1 --ntasks=1 --mem=20 --nodelist={first}"
    _, shown = batch(
        f"{step} {WHERE}; {step} {WHERE}; srun --overlap --ntasks=4 --mem=20 {WHERE}",
        f"--nodes=2 --ntasks-per-node=2 --mem=100 --nodelist={first},{second}",
    )
    seen = shown.split()
    assert len(seen) == 6
    assert seen[0] == seen[1]
    assert len(set(seen)) == 2
    own = {node.output(f"{WHERE}") for node in two_computes}
    assert not own & set(seen), (first, second)


def test_job_sees_its_own_processes_alone(login, controller, user, computes, batch):
    options = f"--mem=60 --nodelist={computes[0].name}"
    with jobs.running(login, controller, user, f"--pod-network {options}"):
        _, shown = batch(f"{ALL}; cat /proc/1/comm; kill -9 1 2>/dev/null; ps -p 1 -o user=", options)
    everything, first, owner = shown.strip().splitlines()
    assert set(everything.split()) <= {"cat", "isthmus_init", "sh", "bash", "slurm_script", "sort", "xargs"}
    assert (first, owner.strip()) == ("isthmus_init", "root")


def test_terminal_has_job_control(login, user):
    typed = "sleep 60 & kill -STOP %1; until jobs -s | grep Stopped; do sleep 0.1; done; kill -KILL %1; exit; exit 0"
    shell = "srun --pod-network --mem=50 --pty bash --norc -i"
    shown = login.run_as(user, f"echo {shlex.quote(typed)} | script -qec {shlex.quote(shell)} /dev/null")
    assert [line for line in shown.splitlines() if line.startswith("[1]+  Stopped")]


def test_signals_of_slurm_arrive(login, controller, user):
    waits = "trap 'echo got usr1; exit 0' USR1; echo ready; while :; do sleep 0.1; done"
    job = jobs.submit(login, user, "--pod-network --mem=50", waits)
    wait(lambda: jobs.written(login, user, job), lambda seen: "ready" in seen)
    login.run_as(user, f"scancel --batch --signal=USR1 {job}")
    jobs.wait_for_job(controller, job, "COMPLETED")
    assert "got usr1" in jobs.output(login, user, job)


def test_exit_codes_and_core_dumps_are_the_tasks(login, user):
    assert login.try_as(user, "srun --pod-network --mem=50 sh -c 'exit 7'").rc == 7
    dump = "cd $(mktemp -d) && ulimit -c unlimited && (sleep 60 & kill -SEGV $!; wait $!; echo code $?)"
    assert "code 139" in login.run_as(user, f"srun --pod-network --mem=50 sh -c {shlex.quote(dump)}")


def test_debugger_reaches_the_jobs_own_processes(batch):
    _, shown = batch(f"sleep 60 & OTHER=$! python3 -c {shlex.quote(ATTACH)}; wait $!; echo code $?")
    assert shown.split() == ["traced", "code", "138"]


def test_cancelled_job_takes_what_it_left_behind_along(login, controller, user, computes):
    node = computes[0]
    leave = "setsid sleep 98761 </dev/null >/dev/null 2>&1 & echo left; sleep 300"
    job = jobs.submit(login, user, f"--pod-network --mem=50 --nodelist={node.name}", leave)
    wait(lambda: jobs.written(login, user, job), lambda seen: "left" in seen)
    listed = node.output(f"scontrol listpids {job} | awk 'NR > 1 && $1 > 0 {{print $1}}'").split()
    left = node.output("pgrep -f '^sleep 98761'")
    assert left in listed
    init = node.output(f"cut -d' ' -f1 /run/isthmus/spank/{job}.init")
    jobs.cancel(controller, job)
    wait(lambda: node.run(f"test -e /proc/{left} -o -e /proc/{init} -o -e /run/isthmus/spank/{job}.init").rc != 0)


def test_orphans_are_reaped(batch):
    make = "for i in 1 2 3 4; do (true &); done; sleep 0.5; ps -eo stat= | grep -c Z"
    _, shown = batch(f"{make}; true")
    assert shown.strip() == "0"


def test_accounting_sees_what_tasks_use(controller, batch):
    job, _ = batch(f'srun --mem=200 python3 -c "{ALLOCATE}"', "--mem=250")

    def used():
        step = controller.output(f"sacct --noheader --parsable2 --units=M --format=MaxRSS --jobs={job}.0").strip("M\n")
        return float(step or 0)

    wait(used, lambda mib: mib >= 80)


def test_memory_is_limited(login, controller, user):
    job = jobs.submit(login, user, "--pod-network --mem=50", "head -c 300M /dev/zero | tail -c 300M | wc -c")
    assert jobs.wait_for_job(controller, job, "OUT_OF_MEMORY") == "OUT_OF_MEMORY"


def test_session_of_ssh_sees_the_job_alone(login, controller, user, computes):
    node = computes[0]
    if node.run("grep -q 'pam_isthmus.so job' /etc/pam.d/sshd").rc:
        pytest.skip("sessions on the site's compute nodes stay on the node")
    wait(lambda: login.run_as(user, "squeue --me --noheader"), lambda shown: shown == "")
    with jobs.running(login, controller, user, f"--pod-network --mem=50 --nodelist={node.name}", "sleep 98762") as job:
        shown = inside(login, user, f"{WHERE}; pgrep -f '^sleep 98762$' | wc -l; cat /proc/1/comm", node=node.name)
        there = login.run_as(user, f"srun --overlap --mem=20 --jobid={job} {WHERE}")
        assert shown.split() == [there, "1", "isthmus_init"]
        assert there != node.output(WHERE)


def test_step_that_leaves_the_network_leaves_the_namespace(batch, computes):
    node = computes[0]
    step = f"srun --mem=20 --pod-network=none {WHERE}"
    _, shown = batch(f"{WHERE}; {step}", f"--mem=50 --nodelist={node.name}")
    within, without = shown.split()
    assert without == node.output(WHERE) != within
