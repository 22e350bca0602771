"""`isthmus bench` beside a plain Kubernetes, as typed; the clusters are the test's, the commands real."""

import json
from types import SimpleNamespace

import pytest
import yaml

from isthmus.bench.plan import Plain
from isthmus.cli import plain_kubernetes
from isthmus.cli.commands import bench
from isthmus.cli.main import main
from isthmus.model.slurm.cluster import SlurmNode
from isthmus.workloads.installing import State
from tests.support.files import certificates


@pytest.fixture
def site(tmp_path, monkeypatch):
    """Four nodes, and a user whose Kubernetes has MPIJobs."""
    nodes = [SlurmNode(f"c{place}", 96, 24576, state="IDLE") for place in range(4)]
    monkeypatch.setattr(bench, "offer", lambda: SimpleNamespace(nodes=nodes))
    monkeypatch.setattr(bench, "server", object)
    monkeypatch.setattr(bench, "workloads", lambda: {"mpi": None})
    monkeypatch.setattr(bench.installing, "state", lambda api, workload: State(ready=True))
    monkeypatch.setattr(bench.user_cluster, "here", lambda: SimpleNamespace(network=object()))
    monkeypatch.setenv("HOME", str(tmp_path))


@pytest.fixture
def config(tmp_path):
    """A kubeconfig of a server that is down."""
    keys = certificates.write_cluster(tmp_path / "pki")
    user = {"client-certificate": str(keys / "admin.crt"), "client-key": str(keys / "admin.key")}
    cluster = {"server": "https://127.0.0.1:1", "certificate-authority": str(keys / "ca.crt")}
    content = {
        "clusters": [{"name": "plain", "cluster": cluster}],
        "users": [{"name": "admin", "user": user}],
        "contexts": [{"name": "plain", "context": {"cluster": "plain", "user": "admin"}}],
        "current-context": "plain",
    }
    path = tmp_path / "plain.conf"
    path.write_text(yaml.safe_dump(content))
    return str(path)


@pytest.fixture
def log(tmp_path):
    return tmp_path / "log"


@pytest.fixture
def hooks(log):
    return [f"--plain-{word}=sh -c 'echo {word} >>{log}'" for word in ("start", "stop")]


@pytest.fixture
def there(monkeypatch):
    """It has two nodes."""
    monkeypatch.setattr(plain_kubernetes, "look", lambda api: Plain(nodes=2, cpus=2, memory_mib=24000))


def planned(capsys, *words):
    assert main(["bench", "plan", "--json", *words]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.usefixtures("site", "there")
def test_plan_has_the_column_and_starts_the_other_only_to_look(capsys, config, hooks, log):
    reported = planned(capsys, "--plain-kubernetes", config, *hooks)
    assert reported["left_out"] == {
        f"{cell}/plain-kubernetes": "needs 4 nodes, and 2 of the plain Kubernetes take pods"
        for cell in ("table3/1/4", *(f"table{table}/{ranks} B" for table in (5, 6) for ranks in (4, 8, 12, 16)))
    }
    # Until it is stopped nobody knows whether this cluster is up.
    assert log.read_text().split() == ["stop", "start", "stop"]
    assert reported["runs"] > planned(capsys)["runs"]


@pytest.mark.usefixtures("site")
def test_plan_says_that_the_other_does_not_answer(capsys, config):
    reported = planned(capsys, "--plain-kubernetes", config)
    assert len(reported["left_out"]) == 23
    (reason,) = set(reported["left_out"].values())
    assert reason.startswith("the plain Kubernetes does not answer (")
    assert reason.endswith("; start it")


@pytest.mark.usefixtures("site")
def test_nothing_runs_beside_one_that_does_not_answer(capsys, config, hooks, log):
    assert main(["bench", "run", "--plain-kubernetes", config, *hooks]) == 1
    assert "; start it, or leave out --plain-kubernetes" in capsys.readouterr().err
    assert log.read_text().split() == ["stop", "start", "stop"]


@pytest.mark.usefixtures("site", "there")
def test_command_that_fails_ends_before_any_run(capsys, config, hooks):
    words = ["--plain-start=sh -c 'echo no power >&2; exit 3'", hooks[1]]
    assert main(["bench", "run", "--plain-kubernetes", config, *words]) == 1
    assert "no power\nnothing is measured beside what may be up; mend it, and go on" in capsys.readouterr().err


@pytest.mark.usefixtures("site", "there")
def test_interrupted_run_stops_the_other(capsys, monkeypatch, config, hooks, log):
    def session(here, site, folder, file, progress, other):
        def interrupted(*_):
            other.turns.to(plain=True)
            raise KeyboardInterrupt

        return SimpleNamespace(go_on=interrupted)

    monkeypatch.setattr(bench, "_site", lambda *_: SimpleNamespace(settings={}, image="i"))
    monkeypatch.setattr(bench.info, "read", lambda: SimpleNamespace(name="c"))
    monkeypatch.setattr(bench, "_session", session)
    assert main(["bench", "run", "--plain-kubernetes", config, *hooks]) == 130
    assert log.read_text().split() == ["stop", "start", "stop"]


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["--plain-kubernetes", "none.conf"], 1, "none.conf cannot be used: [Errno 2] No such file"),
        (["--plain-kubernetes", "{token}"], 1, "--plain-kubernetes takes a kubeconfig with a client certificate"),
        (["--plain-kubernetes", "{config}", "--plain-start=true"], 2, "go together; add the other one"),
        (["--plain-start=true", "--plain-stop=true"], 2, "add --plain-kubernetes"),
        (["--plain-image=a:1"], 2, "add --plain-kubernetes"),
        (["--plain-start='"], 2, "is no command: No closing quotation"),
        (["--plain-stop="], 2, "no command is given"),
    ],
)
@pytest.mark.parametrize("verb", ["plan", "run"])
@pytest.mark.usefixtures("site")
def test_options_that_cannot_be_used_are_refused(capsys, tmp_path, config, verb, words, status, said):
    token = yaml.safe_load((tmp_path / "plain.conf").read_text()) | {
        "users": [{"name": "admin", "user": {"token": "a"}}]
    }
    (tmp_path / "token.conf").write_text(yaml.safe_dump(token))
    named = [word.format(config=config, token=tmp_path / "token.conf") for word in words]
    try:
        ended = main(["bench", verb, *named])
    except SystemExit as error:
        ended = error.code
    assert ended == status
    assert said in capsys.readouterr().err
