"""The command isthmus, as a user types it."""

import json
import subprocess
import sys
from importlib.metadata import version

import pytest

from isthmus.cli.commands import info
from isthmus.cli.main import main


@pytest.fixture
def cluster_file(tmp_path, monkeypatch):
    path = tmp_path / "cluster.json"
    monkeypatch.setattr(info.read, "__defaults__", (path,))
    return path


def test_info_prints_json_for_scripts(cluster_file, capsys):
    cluster_file.write_text(json.dumps({"schema": 1, "name": "bed", "id": "one"}))
    assert main(["info", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert {key: printed[key] for key in ("schema", "name", "id")} == {"schema": 1, "name": "bed", "id": "one"}


def test_info_prints_a_table_for_people(cluster_file, capsys):
    cluster_file.write_text(json.dumps({"schema": 1, "name": "bed", "id": "one"}))
    assert main(["info"]) == 0
    assert "bed" in capsys.readouterr().out


def test_info_outside_a_cluster_reports_the_remedy(cluster_file, capsys):
    assert main(["info"]) == 1
    assert f"{cluster_file} is missing; run this on a host of the cluster" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["{", "[]", '{"name": "bed"}'])
def test_info_with_a_damaged_file_names_it(cluster_file, capsys, text):
    cluster_file.write_text(text)
    assert main(["info"]) == 1
    assert str(cluster_file) in capsys.readouterr().err


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_completion_knows_the_commands(capsys, shell):
    assert main(["completion", shell]) == 0
    assert "completion" in capsys.readouterr().out


def test_version_is_that_of_the_package(capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["--version"])
    assert stopped.value.code == 0
    assert capsys.readouterr().out == f"isthmus {version('isthmus')}\n"


def test_no_other_command_is_loaded():
    code = "import sys; from isthmus.cli.main import main; main(['info']); print(*sys.modules)"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    loaded = {name.rpartition(".")[2] for name in shown.split() if name.startswith("isthmus.cli.commands.")}
    assert loaded == {"info"}


@pytest.mark.parametrize("arguments", [[], ["unknown"], ["completion", "fish"]])
def test_wrong_usage_ends_with_two(arguments):
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 2
