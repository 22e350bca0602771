"""sacct's answer, with texts that users chose."""

import os

import pytest

from isthmus.clients import process
from isthmus.clients.slurm import accounting
from isthmus.clients.slurm.commands import SlurmError

TRES = "billing=2,cpu=2,gres/gpu=3,gres/gpu:tesla=3,mem=1.50G,node=1"
ROWS = [
    ("12", "alice", "users", "a|name\nof two lines", "pod=default/web", "60", "120", "00:01.500", TRES),
    ("12.batch", "", "users", "batch", "", "60", "120", "00:01.250", "cpu=2,mem=1.50G,node=1"),
    ("12.0", "", "users", "x", "", "60", "120", "1-02:03:04", "cpu=2,mem=1.50G,node=1"),
    ("13", "bob", "lab", "", "", "0", "0", "00:00:00", ""),
]


@pytest.fixture
def sacct(monkeypatch):
    """Answer with rows, as the delimiter asked for has them; return the calls."""

    def answer(rows=ROWS, spoil=lambda text: text):
        def run(argv, **_):
            calls.append(argv)
            mark = next(word for word in argv if word.startswith("--delimiter=")).partition("=")[2]
            return process.Finished(spoil("".join("".join(f"{each}{mark}" for each in row) + "\n" for row in rows)), "")

        calls = []
        monkeypatch.setattr(accounting, "run", run)
        return calls

    return answer


def test_a_job_is_what_it_had_and_what_its_steps_used(sacct):
    sacct()
    first, second = accounting.jobs("now-1days")
    assert (first.id, first.name, first.extra) == ("12", "a|name\nof two lines", "pod=default/web")
    assert (first.elapsed_s, first.cpu_s, first.memory_mib, first.gpus) == (60, 120, 1536, 3)
    assert first.used_s == 1.25 + 24 * 3600 + 2 * 3600 + 3 * 60 + 4
    assert (second.user, second.account, second.memory_mib, second.used_s) == ("bob", "lab", 0, 0)


def test_no_jobs_are_none(sacct):
    sacct([])
    assert accounting.jobs("now-1days") == []


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({}, [f"--user={os.getuid()}"]),
        ({"users": ["alice", "bob"], "until": "now"}, ["--endtime=now", "--user=alice,bob"]),
        ({"everybody": True}, ["--allusers"]),
    ],
)
def test_whose_jobs_are_asked_for(sacct, asked, words):
    calls = sacct()
    accounting.jobs("now-1days", **asked)
    assert calls[0][-len(words) :] == words
    assert "--starttime=now-1days" in calls[0]


@pytest.mark.parametrize(
    "spoil", [lambda text: text[:-20], lambda text: f"slurmdbd: hello\n{text}", lambda text: text + "more"]
)
def test_another_answer_is_an_error(sacct, spoil):
    sacct(spoil=spoil)
    with pytest.raises(SlurmError, match="no list of jobs"):
        accounting.jobs("now-1days")


def test_a_refusal_says_why(monkeypatch):
    def run(argv, **_):
        raise process.ProcessError("sacct", 1, "ended with status 1", "", "Invalid time specification\n")

    monkeypatch.setattr(accounting, "run", run)
    with pytest.raises(SlurmError, match="Invalid time specification"):
        accounting.jobs("nonsense")
