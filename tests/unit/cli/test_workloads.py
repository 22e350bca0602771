"""`isthmus workloads`, as typed."""

import json
import re

import pytest

from isthmus.cli.commands import workloads
from isthmus.cli.main import main
from isthmus.controlplane import settings
from isthmus.filters.workloads import offer as filters
from isthmus.workloads import offer
from tests.support.fakes.api_objects import ApiObjects

NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "mpi-operator"}}
DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {
        "name": "mpi-operator",
        "namespace": "mpi-operator",
        "generation": 1,
        "labels": {"app.kubernetes.io/version": "1.2.3"},
    },
    "status": {"observedGeneration": 1, "availableReplicas": 1},
}


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A host of the layer, for a user whose cluster was never up."""
    reported = {"obtained": {"mpi-operator": {"version": "1.2.4"}}, "folder": str(tmp_path), "images": {"i": "ctl/i:1"}}
    file = tmp_path / "workloads.json"
    file.write_text(filters.workloads_index(["mpi"], reported))
    (tmp_path / "mpi/examples").mkdir(parents=True)
    (tmp_path / "mpi/examples/pi.yaml").touch()
    (tmp_path / "mpi/manifest.yaml").write_text(f"{json.dumps(NAMESPACE)}\n---\n{json.dumps(DEPLOYMENT)}\n")
    known = tmp_path / "kubernetes.json"
    known.write_text(json.dumps({"schema": 1, "image": "/opt/image", "driver": "none"}))
    monkeypatch.setattr(offer.read, "__defaults__", (file,))
    monkeypatch.setattr(settings.read, "__defaults__", (known,))
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".isthmus").mkdir()
    return tmp_path


@pytest.fixture
def api(site, monkeypatch):
    """The user's cluster is up, with the workload in an older version."""
    found = ApiObjects()
    found.apply(DEPLOYMENT)
    monkeypatch.setattr(workloads, "server", lambda: found)
    return found


def test_list_needs_no_cluster(site, capsys):
    assert main(["workloads"]) == 0
    assert "MPI Operator" in (reported := capsys.readouterr().out)
    assert "down" in reported


def test_list_is_json_for_scripts(api, capsys):
    for command in (["workloads", "--json"], ["workloads", "list", "--json"], ["workloads", "status", "--json"]):
        assert main(command) == 0
        reported = json.loads(capsys.readouterr().out)
        assert (reported["schema"], reported["up"], [each["name"] for each in reported["workloads"]]) == (
            1,
            True,
            ["mpi"],
        )
        assert reported["workloads"][0]["cluster"]["version"] == "1.2.3"


@pytest.mark.parametrize("verb", [["add", "mpi"], ["status"], ["remove", "mpi"]])
def test_cluster_that_is_down_is_reported(site, capsys, verb):
    assert main(["workloads", *verb]) == 1
    assert "your Kubernetes is down; start it with `isthmus up`" in capsys.readouterr().err


@pytest.mark.parametrize("verb", ["add", "status", "remove"])
def test_unknown_name_is_reported(api, capsys, verb):
    assert main(["workloads", verb, "mpj"]) == 1
    assert "the site offers no workload 'mpj'; did you mean mpi?" in capsys.readouterr().err


def test_status_reports_the_sites_newer_version(api, capsys, site):
    assert main(["workloads", "status", "mpi"]) == 0
    reported = capsys.readouterr().out
    assert "1.2.3 ready, the site has 1.2.4" in reported
    assert f"{site}/mpi/examples/pi.yaml" in re.sub(r"\s", "", reported)


def test_status_of_what_is_not_added_ends_with_one(api, capsys):
    api.objects.clear()
    assert main(["workloads", "status"]) == 0
    assert main(["workloads", "status", "mpi"]) == 1
    assert "isthmus: mpi: not added" in capsys.readouterr().err


def test_add_shows_examples(api, capsys):
    assert main(["workloads", "add", "mpi"]) == 0
    assert "mpi 1.2.3 is ready\n  kubectl apply -f" in capsys.readouterr().out


def test_remove_says_what_it_did(api, capsys):
    assert main(["workloads", "remove", "mpi", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"schema": 1, "name": "mpi", "removed": True}
    assert main(["workloads", "remove", "mpi"]) == 0
    assert capsys.readouterr().out == "mpi was not there\n"


@pytest.mark.parametrize("words", [["add"], ["remove"], ["add", "mpi", "--timeout", "soon"], ["add", "mpi", "x"]])
def test_wrong_usage_ends_with_two(words):
    with pytest.raises(SystemExit) as stopped:
        main(["workloads", *words])
    assert stopped.value.code == 2


def test_host_without_the_layer_is_reported(site, capsys):
    (site / "workloads.json").unlink()
    assert main(["workloads"]) == 1
    assert "the site offers no workloads here" in capsys.readouterr().err
