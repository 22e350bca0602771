"""The plugin in each way that Slurm starts tasks."""

import pytest

from tests.support.clusters import jobs
from tests.support.wait import wait

# What a task sees of the network it is in, in one line.
SEES = "ls /sys/class/net | xargs"
POD = "eth0 lo"
CHOOSE = "there is no such network; choose private, flannel, routed, cni or none"


@pytest.fixture(scope="module", autouse=True)
def outputs(login, user):
    """Files of this module's jobs, which it removes."""
    yield
    login.run_as(user, "rm -f .isthmus-test-*.out")


@pytest.fixture
def batch(login, controller, user):
    """Run a batch job that must succeed; give its output."""

    def run(options, command):
        job = jobs.submit(login, user, options, command)
        jobs.wait_for_job(controller, job, "COMPLETED")
        return jobs.output(login, user, job)

    return run


def traces(node, job):
    """What a node still has of a job's network."""
    found = node.run(f"ls -d /run/netns/isthmus-{job} /sys/class/net/iv{job} /run/isthmus/spank/{job}.*")
    return found.stdout.split()


@pytest.mark.parametrize("option", ["--pod-network", "--pod-network=private"])
def test_srun_that_asks_runs_in_a_pod(login, user, option):
    assert login.run_as(user, f"srun {option} sh -c '{SEES}'") == POD


@pytest.mark.parametrize("option", ["", "--pod-network=none"])
def test_srun_that_does_not_ask_runs_on_the_node(login, user, computes, option):
    node = computes[0]
    where = "readlink /proc/self/ns/net"
    assert login.run_as(user, f"srun --nodelist={node.name} {option} {where}") == node.output(where)


@pytest.mark.parametrize("program", ["srun", "sbatch --wrap", "salloc"])
def test_unknown_network_is_refused_at_submission(login, user, program):
    command, _, rest = program.partition(" ")
    # Slurm's commands end with 255 here, which is ssh's own word for a lost connection.
    refused = login.try_as(user, f"{command} --pod-network=bridge {rest} true || exit 1")
    assert refused.rc == 1
    assert f"isthmus: --pod-network=bridge: {CHOOSE}" in refused.stderr
    wait(lambda: login.run_as(user, "squeue --me --noheader"), lambda shown: shown == "")


def test_every_node_of_a_job_has_its_pod_before_the_first_step(login, user, two_computes):
    seen = login.run_as(user, f"srun --pod-network --nodes=2 --ntasks-per-node=2 --mem-per-cpu=20 sh -c '{SEES}'")
    assert seen.splitlines() == [POD] * 4


def test_batch_script_and_its_steps_share_the_pod(batch):
    where = "readlink /proc/self/ns/net"
    assert len(set(batch("--pod-network", f"{where}; srun {where}; srun --pod-network {where}").split())) == 1


def test_step_may_leave_the_pod(batch, computes):
    node = computes[0]
    where = "readlink /proc/self/ns/net"
    inside, outside = batch(
        f"--pod-network --nodelist={node.name}", f"{where}; srun --pod-network=none {where}"
    ).split()
    assert outside == node.output(where) != inside


def test_step_that_asks_within_a_job_that_did_not_fails_clearly(batch):
    seen = batch("", "srun --pod-network true 2>&1 || echo refused")
    assert "none was made for it when it began; give --pod-network to sbatch or salloc" in seen
    assert seen.splitlines()[-1] == "refused"


def test_step_from_outside_enters_the_pod(login, controller, user):
    with jobs.running(login, controller, user, "--pod-network --mem=50") as job:
        assert login.run_as(user, f"srun --overlap --mem=20 --jobid={job} sh -c '{SEES}'") == POD


def test_salloc_gives_steps_a_pod(login, user):
    assert login.run_as(user, f"salloc --quiet --pod-network srun sh -c '{SEES}'") == POD


def test_salloc_gives_its_shell_a_pod(login, controller, user):
    if "use_interactive_step" not in jobs.settings(controller)["LaunchParameters"]:
        pytest.skip("shells of salloc run on the submit host here")
    shell = login.run_as(user, f"echo '{SEES}; exit' | script -qec 'salloc --quiet --pod-network' /dev/null")
    assert POD in [line.strip() for line in shell.splitlines()]


def test_terminal_works_in_a_pod(login, user):
    shown = login.run_as(user, f"script -qec 'srun --pod-network --pty sh -c \"tty; {SEES}\"' /dev/null").splitlines()
    assert any("/dev/pts/" in line for line in shown)
    # A terminal may give back the NUL that srun begins to forward with.
    assert POD in [line.strip("\0^@ \r") for line in shown]


def test_tasks_of_an_array_have_pods_of_their_own(login, controller, user):
    options = "--array=0-2 --pod-network --mem=20 --output=.isthmus-test-%A.out --open-mode=append"
    job = jobs.submit(login, user, options, "ip -4 -o address show eth0")
    wait(lambda: login.run_as(user, "squeue --me --noheader"), lambda shown: shown == "")
    assert len({line.split()[3] for line in jobs.output(login, user, job).splitlines()}) == 3


def test_parts_of_a_heterogeneous_job_have_pods(login, user, two_computes):
    part = f"--ntasks=1 --mem=20 --pod-network sh -c '{SEES}'"
    assert login.run_as(user, f"srun {part} : {part}").splitlines() == [POD] * 2


def test_requeued_job_has_a_pod_again(login, controller, user):
    command = f"{SEES}; printenv SLURM_RESTART_COUNT || sleep 300"
    job = jobs.submit(login, user, "--requeue --open-mode=append --pod-network", command)
    wait(lambda: login.try_as(user, f"cat .isthmus-test-{job}.out").stdout.split(), bool)
    controller.output(f"scontrol requeue {job}")
    # Slurm would hold it back for two minutes.
    wait(lambda: controller.output(f"squeue --noheader --format=%T --jobs={job}"), lambda seen: seen == "PENDING")
    controller.output(f"scontrol update JobId={job} StartTime=now")
    jobs.wait_for_job(controller, job, "COMPLETED", timeout_s=120)
    reported = [line for line in jobs.output(login, user, job).splitlines() if not line.startswith("slurmstepd")]
    assert reported == [POD, POD, "1"]


def test_cancelled_job_leaves_nothing(login, controller, user, computes):
    node = computes[0]
    with jobs.running(login, controller, user, f"--pod-network --nodelist={node.name}") as job:
        wait(lambda: len(traces(node, job)) >= 3)
    wait(lambda: traces(node, job), lambda left: left == [])


def test_job_cancelled_while_it_begins_leaves_nothing(login, controller, user, computes):
    node = computes[0]
    begun = [jobs.submit(login, user, f"--pod-network --mem=20 --nodelist={node.name}", "sleep 60") for _ in range(4)]
    jobs.cancel(controller, *begun)
    wait(lambda: [traces(node, job) for job in begun], lambda left: not any(left))
    jobs.wait_for_nodes(controller, node.name)


def test_task_keeps_its_cgroups(login, user, computes):
    node = computes[0]
    see = f"srun --nodelist={node.name} %s sh -c 'ls /sys/fs/cgroup; findmnt -no OPTIONS /sys | tail -n 1'"
    assert login.run_as(user, see % "--pod-network") == login.run_as(user, see % "")


def test_memory_of_a_pod_is_limited(login, controller, user):
    job = jobs.submit(login, user, "--pod-network --mem=50", "head -c 300M /dev/zero | tail -c 300M | wc -c")
    assert jobs.wait_for_job(controller, job, "OUT_OF_MEMORY") == "OUT_OF_MEMORY"


def test_node_stays_out_of_the_pod(login, controller, user, computes):
    """Slurm's own daemons, and what ssh is adopted into, stay in the node's network."""
    node = computes[0]
    with jobs.running(login, controller, user, f"--pod-network --nodelist={node.name}") as job:
        processes = rf"^slurmstepd: \[{job}\.|^sleep 100000000$"
        see = f"readlink $(pgrep -f '{processes}' | sed 's|.*|/proc/&/ns/net|') | sort -u"
        inside = wait(lambda: node.output(see))
        assert inside == node.output("readlink /proc/1/ns/net")
