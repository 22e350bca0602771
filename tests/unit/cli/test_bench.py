"""`isthmus bench`, as typed; what runs is the test's."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from isthmus.bench import tables
from isthmus.bench.plan import Plan, Run
from isthmus.bench.results import Document, Result
from isthmus.bench.sizes import SIZES, Table
from isthmus.cli.commands import bench
from isthmus.cli.errors import CommandError
from isthmus.cli.main import main
from isthmus.clients.kube.errors import KubeError
from isthmus.model.slurm.cluster import SlurmNode
from isthmus.workloads.installing import State


@pytest.fixture
def site(tmp_path, monkeypatch):
    """Four nodes, one of them drained, and a user whose Kubernetes is down."""
    nodes = [SlurmNode(f"c{place}", 96, 24576, state="IDLE") for place in range(3)]
    found = SimpleNamespace(nodes=[*nodes, SlurmNode("c3", 8, 100, state="DRAINED")], api=None, ready=True)
    monkeypatch.setattr(bench, "offer", lambda: SimpleNamespace(nodes=found.nodes))
    monkeypatch.setattr(bench, "server", lambda: found.api or down())
    monkeypatch.setattr(bench, "workloads", lambda: {"mpi": None})
    monkeypatch.setattr(bench.installing, "state", lambda api, workload: State(ready=found.ready))
    monkeypatch.setattr(bench.user_cluster, "here", lambda: SimpleNamespace(network=object()))
    monkeypatch.setenv("HOME", str(tmp_path))
    return found


def down():
    raise CommandError("your Kubernetes is down; start it with `isthmus up`")


def planned(capsys, *words):
    assert main(["bench", "plan", "--json", *words]) == 0
    return json.loads(capsys.readouterr().out)


def test_plan_says_what_is_left_out_and_why(site, capsys):
    reported = planned(capsys)
    assert reported["left_out"]["table3/1/4/slurm"] == "needs 4 nodes, and 3 take jobs"
    assert reported["left_out"]["table3/1/2/pod"].startswith("your Kubernetes is down; start it with")
    assert reported["left"] == reported["runs"] > 0 < reported["minutes"]


def test_plan_with_kubernetes_has_pods_and_mpijobs(site, capsys):
    site.api = object()
    assert set(planned(capsys)["left_out"].values()) == {"needs 4 nodes, and 3 take jobs"}
    site.ready = False
    assert planned(capsys)["left_out"]["table3/1/2/mpijob"].endswith("run `isthmus workloads add mpi`")


def test_plan_is_for_people_too(site, capsys):
    assert main(["bench", "plan", "--tables", "table3,ep", "--rounds", "2"]) == 0
    reported = capsys.readouterr().out
    assert "table3: 15 runs" in reported
    assert " more: your Kubernetes is down" in reported


def test_host_without_kubernetes_has_no_network(site, capsys, monkeypatch):
    monkeypatch.setattr(bench.user_cluster, "here", down)
    assert planned(capsys)["left_out"]["figure3/HPL-like/container-network"].startswith("your Kubernetes is down")


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["plan", "--tables", "table9"], 2, "there are table3, table4"),
        (["plan", "--size", "huge"], 2, "invalid choice: 'huge'"),
        (["run", "--limit", "0"], 2, "0 is no number of minutes"),
        (["run", "--limit", "soon"], 2, "invalid _minutes value"),
        (["plan", "--rounds", "-1"], 2, "-1 is no number of rounds"),
        (["run"], 1, "this host is not in the group bench"),
        ([], 2, "required: COMMAND"),
    ],
)
def test_wrong_words_are_refused(site, capsys, words, status, said):
    try:
        ended = main(["bench", *words])
    except SystemExit as error:
        ended = error.code
    assert ended == status
    assert said in capsys.readouterr().err


def test_no_node_is_no_cluster(site, capsys):
    site.nodes = site.nodes[-1:]
    assert main(["bench", "plan"]) == 1
    assert "no node accepts jobs" in capsys.readouterr().err


def test_api_server_that_does_not_answer_leaves_pods_out(site, capsys, monkeypatch):
    def silent():
        raise KubeError("no answer")

    monkeypatch.setattr(bench, "server", silent)
    assert planned(capsys)["left_out"]["ep/2/pod"] == "no answer"


def test_file_that_holds_no_results_is_refused(site, capsys, tmp_path):
    (tmp_path / "mine.json").write_text("{}")
    assert main(["bench", "plan", "--output", str(tmp_path / "mine.json")]) == 1
    assert "holds no results" in capsys.readouterr().err


def finished(*results, runs=3):
    """What the command ends with when so many of EP's first runs are planned, and these are had."""
    launches = list(tables.launches(Table.EP, SIZES["smoke"]))[:runs]
    made = Plan(tuple(Run(1, each) for each in launches), {})
    found = [
        Result(1, "ep", each.row, str(each.column), "now", error=error)
        for each, error in zip(launches, results, strict=False)
    ]
    with pytest.raises(CommandError) as reported:
        bench._finish(made, Document("smoke", {}, {}, tuple(found)), Path("x"))
    return reported.value.status, str(reported.value)


def test_failure_does_not_end_a_series_of_which_something_was_not_tried():
    status, said = finished("", "it broke")
    assert (status, said.splitlines()[0]) == (
        3,
        "2 runs are left; the same command continues, 1 of them because they failed:",
    )
    assert finished("", "it broke", "too")[0] == 1
    assert finished("")[1] == "2 runs are left; the same command continues"


def test_interrupted_run_says_that_it_can_go_on(site, capsys, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(bench, "_site", lambda *_: SimpleNamespace(settings={}, image="i"))
    monkeypatch.setattr(bench.info, "read", lambda: SimpleNamespace(name="c"))
    monkeypatch.setattr(bench, "_session", lambda *_: SimpleNamespace(go_on=interrupted))
    assert main(["bench", "run", "--tables", "ep"]) == 130
    assert "interrupted; the same command continues" in capsys.readouterr().err
