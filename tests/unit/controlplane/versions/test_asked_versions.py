"""Up and status about versions of Kubernetes: what is kept, refused, and reported."""

import dataclasses
from pathlib import Path

import pytest

from isthmus.cli.commands import status as printing
from isthmus.controlplane.commands import status as viewing
from isthmus.controlplane.commands import up as starting
from isthmus.controlplane.commands import user_options
from isthmus.controlplane.commands.user_options import UserOptions
from isthmus.controlplane.doctor import examine
from isthmus.controlplane.doctor.findings import Level
from isthmus.controlplane.errors import ControlPlaneError
from isthmus.controlplane.layout import JOB_NAME
from isthmus.controlplane.settings import Settings
from isthmus.controlplane.versions import record
from isthmus.controlplane.versions.outlook import look
from isthmus.controlplane.versions.plan import Image, Versions
from isthmus.controlplane.versions.record import Failure, Record

WAY = " by way of 1.36.3"
SERVER = "https://10.64.0.2:6443"


class Answers:
    """An API server that is ready and empty."""

    def __init__(self, home, server, timeout_s=0):
        assert server == SERVER

    def text(self, path):
        return "ok"

    def get(self, path):
        return {"gitVersion": "v1.36.3"} if path == "/version" else {"items": []}


@pytest.fixture(autouse=True)
def _answering(monkeypatch):
    for module in (starting, viewing):
        monkeypatch.setattr(module, "api", Answers)


def up(context, **changes):
    return starting.up(context, changes, lambda _: None, 60)


OLD, NEW = (Image(Path(f"/share/{version}"), version, "3.6.14") for version in ("1.36.3", "1.37.2"))


@pytest.fixture
def choices(context):
    """A site with two versions, and a cluster that the older one ran last."""
    context.home.cluster.folder.mkdir(parents=True, exist_ok=True)
    record.write(context.home.cluster, Record(OLD.versions, "1.0"))
    return dataclasses.replace(context, settings=Settings(Path("/share/1.37.2"), images=(NEW, OLD)))


def test_up_keeps_the_version_that_was_asked_for(choices, slurm, ready):
    slurm.on_submit = ready
    assert up(choices, kubernetes="1.36").warnings == ()
    assert user_options.read(choices.home.cluster).kubernetes == "1.36"
    found = viewing.status(choices).kubernetes
    assert (found["data"], found["there"], found["next"]) == ("1.36.3", ("1.37.2", "1.36.3"), "1.36.3")
    slurm.jobs.clear()
    up(choices, kubernetes="newest")
    assert viewing.status(choices).kubernetes["next"] == "1.37.2"


@pytest.mark.parametrize(("version", "words"), [("1.35", "has no Kubernetes 1.35; choose from"), ("1.38", "no Kub")])
def test_version_that_cannot_run_is_refused_before_any_job(choices, slurm, version, words):
    with pytest.raises(ControlPlaneError, match=words):
        up(choices, kubernetes=version)
    assert (slurm.submitted, choices.network.reserved) == ([], set())
    assert not choices.home.cluster.user_options.exists()


def test_version_of_one_that_runs_is_for_its_next_start(choices, slurm, ready):
    ready(slurm.add(JOB_NAME))
    (warning,) = up(choices, kubernetes="1.36").warnings
    assert "another version of Kubernetes is for its next start" in warning
    assert user_options.read(choices.home.cluster).kubernetes == "1.36"
    with pytest.raises(ControlPlaneError, match=r"no Kubernetes 1\.35"):
        up(choices, kubernetes="1.35")


def test_start_that_would_be_refused_ends_no_cluster(choices, slurm, ready):
    record.write(choices.home.cluster, Record(Versions("1.38.0", "3.6.14"), "1.0"))
    with pytest.raises(ControlPlaneError, match=r"1\.37\.2 cannot read them"):
        up(choices)
    ready(slurm.add(JOB_NAME))
    assert up(choices).server == SERVER
    assert "cannot read them" in viewing.status(choices).kubernetes["refusal"]


def test_failed_version_is_reported_until_it_is_asked_for_again(choices, slurm, ready):
    failure = Failure("1.37.2", NEW.file.name, "etcd ended", "2026-11-25T12:00:00+00:00")
    record.write(choices.home.cluster, Record(OLD.versions, "1.0", failure=failure))
    slurm.on_submit = ready
    (warning,) = up(choices).warnings
    assert "1.37.2 could not be started (etcd ended), and your data are as before" in warning
    assert "`isthmus down` and `isthmus up --kubernetes 1.37.2` try it again" in warning
    assert viewing.status(choices).kubernetes["next"] == "1.36.3"
    slurm.jobs.clear()
    up(choices, kubernetes="1.37.2")
    assert viewing.status(choices).kubernetes["next"] == "1.37.2"
    assert viewing.status(choices).kubernetes["warnings"] == ()


def test_doctor_reports_what_the_next_start_does(choices):
    (found,) = examine._versions(choices)
    assert (found.level, found.what) == (Level.OK, "the next start is by Kubernetes 1.37.2")
    failure = Failure("1.37.2", NEW.file.name, "etcd ended", "2026-11-25T12:00:00+00:00")
    record.write(choices.home.cluster, Record(OLD.versions, "1.0", failure=failure))
    (found,) = examine._versions(choices)
    assert (found.level, found.remedy) == (
        Level.WARNING,
        "`isthmus down` and `isthmus up --kubernetes 1.37.2` try it again",
    )
    record.write(choices.home.cluster, Record(Versions("1.38.0", "3.6.14"), "1.0"))
    (found,) = examine._versions(choices)
    assert (found.level, found.what) == (
        Level.FAILURE,
        "Kubernetes 1.38.0 ran your data last, and 1.37.2 cannot read them",
    )


@pytest.mark.parametrize(
    ("data", "runs", "asked", "words"),
    [
        ("", "", "", "this site has 1.37.2, 1.36.3; 1.37.2 from the next start"),
        ("1.36.3", "1.36.3", "", "1.36.3 runs; this site has 1.37.2, 1.36.3; 1.37.2 from the next start"),
        ("1.36.3", "1.36.3", "1.36", "1.36.3 runs; this site has 1.37.2, 1.36.3"),
        ("1.37.2", "", "", "1.37.2 ran last; this site has 1.37.2, 1.36.3"),
        (
            "1.35.4",
            "",
            "",
            "1.35.4 ran last; this site has 1.37.2, 1.36.3; 1.37.2 from the next start by way of 1.36.3",
        ),
        ("1.37.2", "1.37.2", "1.36", "1.37.2 runs; this site has 1.37.2, 1.36.3\nthe next start is refused: Kub"),
    ],
)
def test_status_says_which_runs_and_which_comes(choices, data, runs, asked, words):
    choices.home.cluster.versions.unlink()
    if data:
        record.write(choices.home.cluster, Record(Versions(data, "3.6.14"), "1.0"))
    found = look(choices.home.cluster, choices.settings.choices, UserOptions(kubernetes=asked))
    shown = printing._versions(dataclasses.asdict(found), runs)
    assert shown == words or (shown.startswith(words) and "refused" in words)


def test_last_line_of_a_program_is_shown_as_it_is(choices, capsys):
    failure = Failure("1.37.2", NEW.file.name, "[/red] etcd: [Errno 28] full", "2026-11-25T12:00:00+00:00")
    record.write(choices.home.cluster, Record(OLD.versions, "1.0", failure=failure))
    found = look(choices.home.cluster, choices.settings.choices, UserOptions())
    printing.Console(width=500).print(printing._table(viewing.Status(kubernetes=dataclasses.asdict(found))))
    assert "([/red] etcd: [Errno 28] full)" in capsys.readouterr().out
