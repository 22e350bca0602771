"""srun in a pod that has no step yet is called from within the pod, as slurmctld cannot."""

from __future__ import annotations

import os
import socket
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

# Tests that run beside each other are in one network namespace.
JOB, OTHER = str(os.getpid()), str(os.getpid() + 2**22)
IN_POD = {"SLURM_JOB_ID": JOB, "SLURMD_NODENAME": "c1"}
# The pauses before one call more: 0.15 s, 0.45 s, 1.35 s, 4.05 s, and more than 10 s before the fifth.
CALLS, PATIENCE_S = 5, 10


def srun(plugin, **environment):
    return plugin.run("srun", **IN_POD | environment)


@pytest.fixture
def job(plugin):
    """A job with a pod on this node."""
    plugin.record(f"{JOB}.driver", "private")
    return plugin


def test_srun_is_called_again_and_again(job):
    began = time.monotonic()
    result = srun(job, HOST_WAITS="3")
    assert result.reported.count("called") == 3
    assert 1.9 <= time.monotonic() - began < PATIENCE_S
    assert (result.reported[-1], result.logged) == ("exit=0", "")


def test_step_that_begins_or_ends_rings(job):
    """Without that the last call would come after 18 s."""
    began = time.monotonic()
    with ThreadPoolExecutor() as pool:
        waits = pool.submit(srun, job, HOST_WAITS=str(CALLS))
        # Not before it waits for a long time; busy machines make it later.
        time.sleep(2.5)
        srun(job)
        assert waits.result().reported.count("called") == CALLS
    assert time.monotonic() - began < PATIENCE_S


def test_srun_of_another_job_does_not_ring(job):
    job.record(f"{OTHER}.driver", "private")
    with ThreadPoolExecutor() as pool:
        waits = pool.submit(srun, job, HOST_WAITS="4", HOST_WAIT_MS="3000")
        time.sleep(2.5)
        srun(job, SLURM_JOB_ID=OTHER)
        assert waits.result().reported.count("waited in vain") == 1


NOT_WAITING = [
    {"SLURM_JOB_ID": ""},
    {"SLURM_JOB_ID": OTHER},
    {"SLURMD_NODENAME": None},
    {"HOST_LISTENS": "1"},
]


@pytest.mark.parametrize("changes", NOT_WAITING, ids=["no job", "no pod", "login host", "more ports"])
def test_srun_is_left_alone(job, changes):
    """Outside of a pod slurmctld itself calls, and who has its step, or something else open, would read what comes."""
    environment = {name: value for name, value in (IN_POD | changes).items() if value is not None}
    result = job.run("srun", HOST_WAITS="1", HOST_WAIT_MS="800", **environment)
    assert "waited in vain" in result.reported


def test_socket_that_it_was_started_with_is_not_its_own(job):
    with socket.create_server(("127.0.0.1", 0)) as inherited:
        inherited.set_inheritable(True)
        assert "called" in job.run("srun", HOST_WAITS="1", **IN_POD, kept=[inherited.fileno()]).reported


def test_network_by_default_needs_no_record(plugin):
    result = plugin.run("srun", "default=private", HOST_WAITS="1", **IN_POD)
    assert "called" in result.reported


def test_sbatch_is_left_alone(job):
    assert "exit=0" in job.run("sbatch", **IN_POD).reported
