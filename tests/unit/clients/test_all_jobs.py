"""Many users' jobs by one question, from programs in Slurm's place."""

import os
import re
import sys

import pytest

from isthmus.clients.slurm import offer as slurm_offer
from isthmus.clients.slurm import pod_jobs
from isthmus.clients.slurm.all_jobs import AllJobs
from isthmus.clients.slurm.commands import SlurmError
from isthmus.model.pod_job import JobState
from isthmus.model.slurm.cluster import Partition, SlurmCluster, SlurmNode

KEYS = "UATNSerk"
JOBS = [
    ("1001", "12", "RUNNING", "c1", "1767225600", "1767229200", "None", "uid|with a bar\nand a line"),
    ("1001", "13", "EXPEDITED", "", "N/A", "N/A", "(Resources)", "x" * 5000),
    ("1001", "?", "RUNNING", "c1", "1", "2", "None", "a row without a number"),
    ("1002", "14", "PENDING", "", "N/A", "N/A", "None", "(null)"),
    ("4294967294", "15", "PENDING", "", "N/A", "N/A", "None", "nobody's"),
]
CONFIG = "Configuration data as of now\nPrivateData             = {}\nPluginDir = /usr/lib\n"
NODES = "c1|main*|up|32|8192|(null)|fast|mixed\nc2|main*|up|16|4096|(null)|(null)|down*\n"


@pytest.fixture
def slurm(tmp_path):
    return Programs(tmp_path)


class Programs:
    """Each program is a Python text; its calls are written down."""

    def __init__(self, folder):
        self.folder = folder
        (folder / "bin").mkdir()
        self.jobs = AllJobs(folder)
        self.squeue(JOBS)

    def make(self, name, text):
        path = self.folder / "bin" / name
        log = f"print(sys.argv[1:], file=open({str(self.folder / 'calls')!r}, 'a'))"
        path.write_text(f"#!{sys.executable}\nimport sys\n{log}\n{text}\n")
        path.chmod(0o755)

    def squeue(self, rows, before=""):
        form = "next(word[9:] for word in sys.argv if word.startswith('--format='))"
        show = f"import re\nform = {form}\nfor row in {rows!r}:\n    job = dict(zip({KEYS!r}, row))\n"
        self.make("squeue", before + show + "    print(re.sub('%(.)', lambda found: job[found[1]], form))")

    @property
    def calls(self):
        return (self.folder / "calls").read_text().splitlines()


def test_each_user_has_his_jobs_and_nobody_asked_for_has_none(slurm):
    found = slurm.jobs.queue({1001, 1003})
    assert {uid: set(rows) for uid, rows in found.items()} == {1001: {"12", "13"}, 1003: set()}
    assert "--user=1001,1003" in slurm.calls[0]


def test_rows_are_read_as_the_kubelets_own_answers_are(slurm):
    running, strange = pod_jobs.found(slurm.jobs.queue({1001})[1001].values())
    assert (running.job.state, running.comment) == (JobState.RUNNING, "uid|with a bar\nand a line")
    assert (strange.job.state, strange.job.reason, len(strange.comment)) == (JobState.UNKNOWN, "EXPEDITED", 64)


def test_account_that_is_no_more_hides_no_others_jobs(slurm):
    slurm.squeue(
        JOBS,
        "if any(word.startswith('--user') for word in sys.argv):\n    sys.exit('squeue: error: Invalid user: 1003')\n",
    )
    assert set(slurm.jobs.queue({1002, 1003})[1002]) == {"14"}
    assert len(slurm.calls) == 2


def test_many_accounts_are_not_named(slurm):
    slurm.jobs.queue(range(1000, 1500))
    assert "--user" not in slurm.calls[0]


@pytest.mark.parametrize("text", ["sys.exit('squeue: error: Unable to contact slurm controller')", "print('?')"])
def test_no_answer_is_an_error(slurm, text):
    slurm.make("squeue", text)
    with pytest.raises(SlurmError):
        slurm.jobs.queue({1001})
    assert len(slurm.calls) == 1


@pytest.mark.parametrize(
    ("private", "level", "hidden"),
    [
        ("none", "", set()),
        ("jobs,usage", "None", {"jobs", "usage"}),
        ("jobs,nodes", "Operator", {"nodes"}),
        ("jobs", "", {"jobs"}),
    ],
)
def test_what_slurm_hides_from_it_is_known(slurm, private, level, hidden):
    slurm.make("scontrol", f"print({CONFIG.format(private)!r})")
    slurm.make("sacctmgr", f"print({level!r})")
    assert slurm.jobs.hidden() == hidden


def test_what_slurm_hides_is_not_guessed(slurm):
    slurm.make("scontrol", "sys.exit('no')")
    with pytest.raises(SlurmError):
        slurm.jobs.hidden()


def test_nodes_that_work_say_the_same_whatever_runs_there(slurm):
    slurm.make("sinfo", f"print({NODES!r}, end='')")
    before = slurm.jobs.nodes()
    slurm.make("sinfo", f"print({NODES.replace('mixed', 'allocated')!r}, end='')")
    assert slurm.jobs.nodes() == before
    assert [row[-1] for row in before.values()] == ["idle", "down*"]


def test_users_own_partitions_get_the_states_of_now():
    """A partition of the user's groups is not in jobsd's view; one of others that is, is not in his."""
    known = SlurmCluster(
        (SlurmNode("c1", 32, 8192), SlurmNode("g1", 8, 1024)),
        (Partition("main", frozenset({"c1"})), Partition("group", frozenset({"g1"}))),
        qos=frozenset({"normal"}),
    )
    rows = [
        ("c1", "main*", "drain", "32", "8192", "(null)", "new", "drained"),
        ("x1", "others", "up", "1", "1", "0", "0", "idle"),
    ]
    now = slurm_offer.renewed(known, rows)
    assert {node.name: node.state for node in now.nodes} == {"c1": "DRAINED", "g1": "IDLE"}
    assert {each.name: each.state for each in now.partitions} == {"main": "DRAIN", "group": "UP"}
    assert now.qos == known.qos


def test_rows_that_are_none_are_an_error():
    with pytest.raises(ValueError, match="none of sinfo"):
        slurm_offer.renewed(SlurmCluster(partitions=(Partition("main", frozenset()),)), [("c1", "main*", "x")])


def test_environment_of_whoever_started_it_changes_nothing(slurm, monkeypatch):
    monkeypatch.setenv("SQUEUE_PARTITION", "debug")
    slurm.squeue(JOBS, "import os\nassert 'SQUEUE_PARTITION' not in os.environ\n")
    assert re.search("--states=all", os.linesep.join(slurm.calls if slurm.jobs.queue({1001}) else []))
