"""Many jobs of several users come and go, twenty at once: none fails, no address is anybody's twice, nothing is left.

Each task writes when it had which address. What was given is checked from these records, not from what etcd says.
"""

import json
import random
from dataclasses import dataclass
from itertools import combinations

import pytest

from tests.support.clusters.network_state import Baseline
from tests.support.wait import wait

JOBS, AT_ONCE = 200, 20
FOLDER = ".isthmus-churn"
TASK = """\
#!/bin/bash
address=$(ip -4 -oneline address show eth0 | awk '{split($4, a, "/"); print a[1]}')
begin=$(date +%s.%N)
sleep $1
printf '{"job": %s, "node": "%s", "address": "%s", "begin": %s, "end": %s}\\n' \\
  $SLURM_JOB_ID $(hostname) $address $begin $(date +%s.%N) > records/$SLURM_JOB_ID.$SLURM_PROCID
"""


@dataclass(frozen=True)
class Stay:
    """A pod's time at an address; seconds since the epoch."""

    job: int
    node: str
    address: str
    begin: float
    end: float


@pytest.fixture(scope="module")
def users(cluster):
    """Several users, each with an empty folder of records on all nodes."""
    users, login = cluster.users[:3], cluster.submit
    if len(users) < 2:
        pytest.skip("the site has one user")
    for user in users:
        login.run_as(user, f"rm -rf {FOLDER}; mkdir -p {FOLDER}/records; cat > {FOLDER}/task.sh <<'END'\n{TASK}END")
    yield users
    for user in users:
        login.run_as(user, f"rm -rf {FOLDER}")


def submit(login, user, dice):
    """Submit a job of one or two nodes and some length, as one of many."""
    nodes, tasks = dice.choice([(1, 1), (2, 1), (2, 2)])
    shape = f"--nodes={nodes} --ntasks-per-node={tasks} --mem-per-cpu=20 --time=5"
    wrapped = f'"srun bash task.sh {dice.uniform(0, 3):.2f}"'
    command = f"cd {FOLDER} && sbatch --parsable --output=%j.out --pod-network {shape} --wrap {wrapped}"
    return login.run_as(user, command), nodes * tasks


def queue(controller):
    return controller.output("squeue --noheader --format=%A").split()


def states(controller, ids):
    shown = controller.output(f"sacct --noheader --allocations --parsable2 --format=JobID,State --jobs={','.join(ids)}")
    return dict(line.split("|") for line in shown.splitlines())


def records(login, user):
    reported = login.run_as(user, f"cat {FOLDER}/records/*").splitlines()
    return [Stay(**json.loads(line)) for line in reported]


def doubles(stays):
    """Return pairs of stays of two jobs at one address at one time; tasks of one pod share theirs."""
    return [
        (one, other)
        for one, other in combinations(stays, 2)
        if one.address == other.address
        and (one.job, one.node) != (other.job, other.node)
        and max(one.begin, other.begin) < min(one.end, other.end)
    ]


def test_doubles_are_seen():
    one = Stay(1, "c1", "10.64.0.3", 10, 12)
    same_pod = Stay(1, "c1", "10.64.0.3", 10.5, 11)
    later, double = (Stay(job, "c2", "10.64.0.3", begin, 13) for job, begin in ((2, 12.5), (3, 11.5)))
    assert doubles([one, same_pod, later]) == []
    assert doubles([one, same_pod, double]) == [(one, double)]


def test_churn_leaves_nothing_and_gives_no_address_twice(cluster, controller, login, users, two_computes):
    baseline, dice = Baseline.of(cluster), random.Random(1)  # noqa: S311
    tasks = {}
    for number in range(JOBS):
        wait(lambda: len(queue(controller)), lambda busy: busy < AT_ONCE, timeout_s=300, interval_s=0.2)
        job, count = submit(login, users[number % len(users)], dice)
        tasks[job] = count
    wait(lambda: queue(controller), lambda left: not left, timeout_s=300)
    ended = wait(lambda: states(controller, tasks), lambda all_: {*all_.values()}.isdisjoint({"RUNNING", "PENDING"}))
    assert {job: state for job, state in ended.items() if state != "COMPLETED"} == {}
    stays = [stay for user in users for stay in records(login, user)]
    assert len(stays) == sum(tasks.values())
    assert not doubles(stays)
    baseline.wait()
