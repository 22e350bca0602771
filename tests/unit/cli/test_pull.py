"""`isthmus pull`, as a user types it."""

import json
from pathlib import Path

import pytest

from isthmus.cli.commands.pull import workspace
from isthmus.cli.main import main
from tests.support.fakes.image_tools import DIGEST, REGISTRY, FakeTools


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("APPTAINER_TMPDIR", str(tmp_path))
    FakeTools().stand_in(monkeypatch)
    return tmp_path


def test_path_is_printed_alone(home, capsys):
    assert main(["pull", f"{REGISTRY}/isthmus/busybox"]) == 0
    assert capsys.readouterr().out == f"{home}/.isthmus/images/{DIGEST.replace(':', '-')}.2.squashfs\n"


def test_json_is_for_scripts(capsys):
    assert main(["pull", "--json", f"{REGISTRY}/isthmus/busybox"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert {
        "schema": 1,
        "digest": DIGEST,
        "cached": False,
        "size_bytes": Path(printed["path"]).stat().st_size,
    }.items() <= printed.items()


def test_refusal_is_on_standard_error_alone(capsys):
    assert main(["pull", f"{REGISTRY}/isthmus/none"]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("isthmus: there is no image ")


def test_what_is_no_image_is_wrong_usage(capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["pull", "No Image"])
    assert stopped.value.code == 2
    assert "'No Image' is no image; write e.g." in capsys.readouterr().err


@pytest.mark.parametrize(
    ("environment", "scratch"),
    [({}, "/var/tmp"), ({"TMPDIR": "/a"}, "/a"), ({"TMPDIR": "/a", "APPTAINER_TMPDIR": "/b"}, "/b")],
)
def test_scratch_is_the_most_exact(environment, scratch, home):
    assert workspace(environment, home, None).scratch == Path(scratch)


def test_credentials_are_the_most_exact(home):
    usual = home / ".apptainer/docker-config.json"
    assert workspace({}, home, None).authfile is None
    usual.parent.mkdir()
    usual.touch()
    assert workspace({}, home, None).authfile == usual
    assert workspace({"REGISTRY_AUTH_FILE": "/a"}, home, None).authfile == Path("/a")
    assert workspace({"REGISTRY_AUTH_FILE": "/a"}, home, Path("/b")).authfile == Path("/b")
