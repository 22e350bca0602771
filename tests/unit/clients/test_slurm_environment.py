"""What Slurm's commands see of the environment: programs in their place write it down."""

import os

import pytest

from isthmus.clients.slurm import commands as slurm
from isthmus.clients.slurm import offer as slurm_offer
from isthmus.clients.slurm import own_jobs as slurm_jobs
from isthmus.clients.slurm.pod_jobs import PodJobs

PROGRAMS = ("sbatch", "squeue", "sacct", "scancel", "sinfo", "sacctmgr")
# Of a job, or of a user for his own calls.
STRIPPED = (
    "ISTHMUS_RESERVATION",
    "SACCT_FEDERATION",
    "SBATCH_ARRAY_INX",
    "SBATCH_CLUSTERS",
    "SBATCH_EXPORT",
    "SBATCH_WAIT",
    "SCANCEL_INTERACTIVE",
    "SCANCEL_PARTITION",
    "SINFO_PARTITION",
    "SLURM_CLUSTERS",
    "SLURM_JOB_ID",
    "SLURM_MEM_PER_NODE",
    "SPANK_X",
    "SQUEUE_PARTITION",
    "SQUEUE_SORT",
    "SRUN_CPUS_PER_TASK",
    "_SLURM_SPANK_OPTION_isthmus_pod_network",
)
REQUESTS = ("SBATCH_ACCOUNT", "SBATCH_PARTITION", "SBATCH_QOS", "SBATCH_RESERVATION", "SBATCH_TIMELIMIT")
KEPT = ("ISTHMUS_CLUSTER_DIR", "LANG", "SLURM_CONF", "SLURM_JWT", "SLURM_SACK_SOCKET")
CALLS = {
    "a pod's job": ("sbatch", lambda prefix: PodJobs(prefix).submit([], ""), ()),
    "pods' jobs": ("squeue", lambda prefix: PodJobs(prefix).queue(), ()),
    "ended pods' jobs": ("sacct", lambda prefix: PodJobs(prefix).accounted(["1"]), ()),
    "a pod's end": ("scancel", lambda prefix: PodJobs(prefix).cancel(["1"]), ()),
    "nodes": ("sinfo", slurm_offer.offer, ()),
    "limits": ("sacctmgr", slurm_offer.offer, ()),
    "all jobs": ("squeue", slurm.jobs_on_nodes, ()),
    "own jobs": ("squeue", lambda _: slurm_jobs.own_jobs(), ()),
    "own job's end": ("scancel", lambda _: slurm_jobs.cancel(["1"]), ()),
    "own job": ("sbatch", lambda _: slurm_jobs.submit([], ""), REQUESTS),
    "whether it may be": ("sbatch", lambda _: slurm_jobs.try_submit([], ""), REQUESTS),
}


@pytest.fixture
def prefix(tmp_path, monkeypatch):
    """Slurm's, also on PATH; each of its programs writes down what it sees."""
    (tmp_path / "bin").mkdir()
    for name in PROGRAMS:
        path = tmp_path / "bin" / name
        path.write_text(f"#!/bin/sh\nenv > {tmp_path}/{name}\n")
        path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    for name in (*STRIPPED, *REQUESTS, *KEPT):
        monkeypatch.setenv(name, "own")
    return tmp_path


def seen(prefix, program):
    return dict(line.partition("=")[::2] for line in (prefix / program).read_text().splitlines())


@pytest.mark.parametrize("program, call, requests", CALLS.values(), ids=CALLS)
def test_only_ways_and_requests_reach_a_command(prefix, program, call, requests):
    call(prefix)
    assert {*seen(prefix, program)} & {*STRIPPED, *REQUESTS, *KEPT} == {*KEPT, *requests}


def test_what_a_call_sets_reaches_it(prefix):
    PodJobs(prefix).queue()
    assert seen(prefix, "squeue")["SLURM_TIME_FORMAT"] == "%s"
    slurm_jobs.submit([], "", {"ISTHMUS_RESERVATION": "kubernetes"})
    assert seen(prefix, "sbatch")["ISTHMUS_RESERVATION"] == "kubernetes"
