"""Slurm's own words, as its commands write them."""

from datetime import UTC, datetime

import pytest

from isthmus.clients import process
from isthmus.clients.slurm import offer as slurm_offer
from isthmus.clients.slurm import pod_jobs
from isthmus.clients.slurm.commands import SlurmError
from isthmus.clients.slurm.pod_jobs import NoAnswerError, PodJobs, RefusedError
from isthmus.model.pod_job import JobState
from isthmus.model.slurm.cluster import Limit
from tests.support.fakes import slurm_programs

KEYS = "ATNSerk"
QUEUE = [
    ("12", "RUNNING", "c1", "1767225600", "1767229200", "None", "uid|with a bar\nand a line"),
    ("13", "PENDING", "", "N/A", "N/A", "(Resources)", "(null)"),
    ("14", "NODE_FAIL", "c[1-2]", "1767225600", "1767225700", "None", "other"),
]
ACCOUNTED = """12|CANCELLED by 1001|c1|1767225600|1767225700|JobHeldUser|0:15
13|COMPLETED|None assigned|Unknown|1767225700|None|3:0
"""
NODES = """c1|main*|up|32|8192|gpu:tesla:2(S:0-1),gpu:4|fast,new|idle
c1|long|drain|32|8192|gpu:tesla:2(S:0-1),gpu:4|fast,new|idle
c2|main*|up|16|4096+|(null)|(null)|down*
"""


class Programs:
    """Answers one program's calls, and fails at others."""

    def __init__(self, answers):
        self.answers, self.calls = answers, []

    def __call__(self, argv, **_):
        name = str(argv[0]).rpartition("/")[2]
        self.calls.append(argv)
        answer = self.answers[name]
        if isinstance(answer, list):
            answer = slurm_programs.shown(argv, [dict(zip(KEYS, row, strict=True)) for row in answer])
        if isinstance(answer, Exception):
            raise answer
        return process.Finished(answer, "")


@pytest.fixture
def programs(monkeypatch):
    def answer(**answers):
        fake = Programs(answers)
        monkeypatch.setattr(pod_jobs, "run", fake)
        monkeypatch.setattr(slurm_offer, "run", fake)
        return fake

    return answer


def failed(stderr, status=1):
    return process.ProcessError("sbatch", status, "ended with status 1", "", stderr)


def test_queue_is_read(programs):
    programs(squeue=QUEUE)
    running, pending, lost = PodJobs().queue()
    assert running.comment == "uid|with a bar\nand a line"
    assert (running.job.state, running.job.started) == (JobState.RUNNING, datetime(2026, 1, 1, tzinfo=UTC))
    assert (running.job.ended, running.job.reason) == (None, "")
    assert (pending.job.reason, pending.job.nodes, pending.job.started) == ("(Resources)", "", None)
    assert (lost.job.state, lost.job.nodes, lost.job.ended.second) == (JobState.NODE_FAIL, "c[1-2]", 40)


def test_accounting_is_read(programs):
    programs(sacct=ACCOUNTED)
    cancelled, done = PodJobs().accounted(["12", "13"])
    assert (cancelled.state, cancelled.user, cancelled.signal) == (JobState.CANCELLED, "1001", 15)
    assert cancelled.reason == ""
    assert (done.exit_code, done.nodes, done.started) == (3, "", None)


def test_other_words_are_no_answer_about_jobs(programs):
    programs(squeue="12|RUNNING")
    with pytest.raises(SlurmError, match="no list of jobs"):
        PodJobs().queue()


def test_unknown_state_of_one_job_hides_no_other(programs):
    programs(squeue=[("11", "DANCING", "c1", "0", "N/A", "None", "x"), *QUEUE], sacct="11|DANCING|c1|?|?|None|\n")
    strange, *others = PodJobs().queue()
    assert (strange.job.id, strange.job.state, strange.job.reason) == ("11", JobState.UNKNOWN, "DANCING")
    assert [one.job.id for one in others] == ["12", "13", "14"]
    assert not (strange.job.state.waiting or strange.job.state.ended)
    assert [job.state for job in PodJobs().accounted(["11"])] == [JobState.UNKNOWN]


def test_row_that_cannot_be_read_hides_no_other(programs, caplog):
    programs(squeue=[("many", "RUNNING", "", "", "", "", ""), *QUEUE], sacct=f"11|a|b\n{ACCOUNTED}")
    assert [one.job.id for one in PodJobs().queue()] == ["12", "13", "14"]
    assert "'many'" in caplog.text
    first = PodJobs().accounted(["11", "12"])[0]
    assert (first.id, first.state) == ("11", JobState.UNKNOWN)


def test_accounting_row_without_a_job_is_no_answer(programs):
    programs(sacct="sacct: strange\n")
    with pytest.raises(SlurmError, match="no list of jobs"):
        PodJobs().accounted(["11"])


@pytest.mark.parametrize(
    ("stderr", "status", "kind"),
    [
        ("sbatch: error: Batch job submission failed: Invalid qos specification", 1, RefusedError),
        ("sbatch: error: Batch job submission failed: Socket timed out on send/recv operation", 1, NoAnswerError),
        ("sbatch: error: Unable to contact slurm controller (connect failure)", 1, NoAnswerError),
        ("", None, NoAnswerError),
    ],
)
def test_no_and_no_answer_differ(programs, stderr, status, kind):
    programs(sbatch=failed(stderr, status))
    with pytest.raises(kind) as reported:
        PodJobs().submit(["--comment=x"], "#!/bin/sh\n")
    assert type(reported.value) is kind


def test_number_is_taken_of_a_federation_too(programs):
    assert (programs(sbatch="17;cluster\n"), PodJobs().submit([], ""))[1] == "17"


def test_ended_job_is_cancelled_already(programs):
    gone = "scancel: error: Kill job error on job id 12: Invalid job id specified\n"
    programs(scancel=failed(gone))
    PodJobs().cancel(["12"])
    programs(scancel=failed(gone + "scancel: error: Kill job error on job id 13: Access/permission denied\n"))
    with pytest.raises(RefusedError, match="denied"):
        PodJobs().cancel(["12", "13"])


def test_offer_is_read(programs):
    programs(sinfo=NODES, sacctmgr="normal,high|cpu=64,mem=128G||20\nnormal|||\n")
    found = slurm_offer.offer()
    first, second = found.nodes
    assert (first.gres, first.features) == ({"gpu:tesla": 2, "gpu": 4}, {"fast", "new"})
    assert (second.state, second.memory_mib, second.gres) == ("DOWN*", 4096, {})
    assert {one.name: (one.state, one.nodes) for one in found.partitions} == {
        "main": ("UP", {"c1", "c2"}),
        "long": ("DRAIN", {"c1"}),
    }
    assert found.qos == {"normal", "high"}
    assert found.limits == (Limit(cpus=64, memory_mib=131072, jobs=20), Limit())


def test_site_without_accounting_has_no_limits(programs):
    programs(sinfo=NODES, sacctmgr=failed("You are not running a supported accounting_storage plugin"))
    assert (slurm_offer.offer().limits, slurm_offer.offer().qos) == ((), frozenset())
