"""A user's jobs, as squeue lists them."""

import pytest

from isthmus.clients import process
from isthmus.clients.slurm import own_jobs as slurm_jobs
from isthmus.clients.slurm.commands import SlurmError
from tests.support.fakes import slurm_programs

KEYS = "iTrNLSjk"
RUNNING = ("12_3", "RUNNING", "None", "c1", "1:00", "2026-01-01T00:00:00", "train|net\n2", "uid")


@pytest.fixture
def squeue(monkeypatch):
    """Let squeue answer with some jobs, or with a text or an error."""

    def answer(reported):
        def run(argv, **_):
            assert argv[0] == "squeue"
            if isinstance(reported, Exception):
                raise reported
            jobs = [dict(zip(KEYS, row, strict=True)) for row in reported] if isinstance(reported, list) else []
            return process.Finished(slurm_programs.shown(argv, jobs) if jobs else reported, "")

        monkeypatch.setattr(slurm_jobs, "run", run)

    return answer


def test_jobs_are_listed_until_they_have_ended(squeue):
    squeue([RUNNING, ("13", "COMPLETED", *RUNNING[2:]), ("14", "COMPLETING", *RUNNING[2:])])
    first, second = slurm_jobs.own_jobs()
    assert first == slurm_jobs.Job(*RUNNING)
    assert (second.id, second.state, second.name) == ("14", "COMPLETING", "train|net\n2")


@pytest.mark.parametrize("reported", ["12|RUNNING", process.ProcessError("squeue", 1, "ended with status 1")])
def test_answer_that_is_none_reports_nothing(squeue, reported):
    squeue(reported)
    with pytest.raises(SlurmError):
        slurm_jobs.own_jobs()
