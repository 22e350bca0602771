"""`isthmus usage`, as typed."""

import json

import pytest

from isthmus.cli.main import main
from isthmus.clients.slurm import accounting
from isthmus.clients.slurm.commands import SlurmError
from isthmus.model.slurm.usage import Used

JOBS = [
    Used("1", "alice", "users", "web", "pod=default/web", 3600, 7200, 1800.0, 1024.0, 0),
    Used("2", "alice", "users", "isthmus-control-plane", "", 3600, 3600, 0.0, 2048.0, 0),
]


@pytest.fixture
def asked(monkeypatch):
    """Answer with JOBS; return what was asked."""
    calls = []

    def jobs(since, until, users, *, everybody):
        calls.append((since, until, users, everybody))
        return JOBS

    monkeypatch.setattr(accounting, "jobs", jobs)
    return calls


def test_table_has_a_row_each(asked, capsys):
    assert main(["usage"]) == 0
    reported = capsys.readouterr().out
    assert "NAMESPACE" in reported
    assert ["default", "1", "2.00", "25", "%", "1.00", "0.00"] in [line.split() for line in reported.splitlines()]
    assert "(control plane)" in reported
    assert asked == [("now-7days", "", [], False)]


def test_json_is_for_scripts(asked, capsys):
    assert main(["usage", "--by", "pod", "--since", "now-1days", "--user", "alice", "--json"]) == 0
    reported = json.loads(capsys.readouterr().out)
    assert (reported["schema"], reported["by"], reported["since"]) == (1, "pod", "now-1days")
    assert [row["key"] for row in reported["rows"]] == ["default/web", "(control plane)"]
    assert asked == [("now-1days", "", ["alice"], False)]


def test_no_answer_is_an_error(monkeypatch, capsys):
    def jobs(*_, **__):
        raise SlurmError("Slurm's accounting did not say what was used: no slurmdbd")

    monkeypatch.setattr(accounting, "jobs", jobs)
    assert main(["usage"]) == 1
    assert "no slurmdbd" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["--by", "weather"], ["--user", "alice", "--all-users"]])
def test_wrong_usage_is_refused(words):
    with pytest.raises(SystemExit) as ended:
        main(["usage", *words])
    assert ended.value.code == 2
