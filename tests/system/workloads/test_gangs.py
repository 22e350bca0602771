"""Pods of an MPIJob start together: two jobs that need the same nodes both end, one that can never fit says so."""

import pytest

from tests.support.wait import wait

CPUS = {"requests": {"cpu": "80", "memory": "256Mi"}}
ALL = {"spec": {"launcherCreationPolicy": "AtStartup"}, "worker": {"resources": CPUS}}


@pytest.fixture
def job(jobs):
    """A function that makes a job; all are gone at the end."""
    made = []

    def make(name, **changes):
        jobs.make(name, **changes)
        made.append(name)
        return name

    yield make
    for name in made:
        jobs.remove(name)


def groups(jobs, name):
    return jobs.space.get(f"podgroups.scheduling.x-k8s.io/{name}")["spec"]["minMember"]


def test_two_jobs_that_each_need_all_nodes_both_end(jobs, job, two_computes):
    """Each worker needs more than half of a node: pods that started by themselves might hold one node each for ever."""
    names = [job(f"pair-{which}", **ALL) for which in ("a", "b")]
    assert {groups(jobs, name) for name in names} == {3}
    for name in names:
        jobs.ended(name, timeout_s=300)
        assert jobs.hosts(name) == {f"{name}-worker-0": 1, f"{name}-worker-1": 1}


def test_job_that_can_never_fit_says_so_and_holds_nothing(jobs, job, mine, login, computes):
    name = job("never", workers=len(computes) + 1, **ALL)
    reported = wait(
        lambda: jobs.space.try_kubectl(f"describe pod {name}-worker-0").stdout, lambda text: "can never start" in text
    )
    assert (
        f"{len(computes) + 1} of its pods need more than half of a node each, and there are {len(computes)} nodes"
        in reported
        or "CPUs together" in reported
    )
    assert name not in login.run_as(mine.user, "squeue --me --noheader --format=%j")
