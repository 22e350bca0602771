"""The commands of a user's cluster, as typed."""

import errno
import json
import os
import re
import subprocess

import pytest

from isthmus.cli import user_cluster
from isthmus.cli.main import main
from isthmus.controlplane import settings
from isthmus.controlplane.pki import kubeconfig


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A user's home on a host of the layer."""
    file = tmp_path / "kubernetes.json"
    file.write_text(json.dumps({"schema": 1, "image": "/opt/image", "driver": "none"}))
    monkeypatch.setattr(settings.read, "__defaults__", (file,))
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".isthmus").mkdir()
    return tmp_path


@pytest.fixture
def own(home):
    path = home / ".isthmus/kubeconfig"
    path.write_text(kubeconfig.of_program("kubelet", "https://10.64.0.2:6443"))
    return path


@pytest.mark.parametrize("command", ["up", "down", "status", "logs", "kubeconfig", "doctor"])
def test_host_without_the_layer_is_reported(tmp_path, monkeypatch, capsys, command):
    monkeypatch.setattr(settings.read, "__defaults__", (tmp_path / "none.json",))
    assert main([command]) == 1
    assert "no member of layer kubernetes" in capsys.readouterr().err


COMMANDS = [["up"], ["down"], ["status"], ["logs", "etcd"], ["kubeconfig"], ["doctor"], ["pull", "debian:13"]]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("kind", ["link", "link to nothing", "pipe", "file", "link below"])
def test_other_thing_in_the_folders_place_is_refused(home, capsys, command, kind):
    (home / ".isthmus").rmdir()
    (home / "elsewhere").mkdir(mode=0o755)
    match kind:
        case "link":
            (home / ".isthmus").symlink_to("elsewhere")
        case "link to nothing":
            (home / ".isthmus").symlink_to("nowhere")
        case "pipe":
            os.mkfifo(home / ".isthmus")
        case "file":
            (home / ".isthmus").write_text("text")
        case "link below":
            (home / ".isthmus").mkdir()
            (home / ".isthmus/cluster").symlink_to(home / "elsewhere")
    assert main(command) == 1
    assert re.search(
        r"\.isthmus(/cluster)? is (a link, which is not followed|no folder); move it away", capsys.readouterr().err
    )
    assert list((home / "elsewhere").iterdir()) == []
    assert (home / "elsewhere").stat().st_mode & 0o777 == 0o755


def test_open_folders_are_closed(home, capsys):
    (home / ".isthmus/cluster").mkdir(mode=0o775)
    (home / ".isthmus").chmod(0o777)
    main(["kubeconfig", "--path"])
    assert [(home / part).stat().st_mode & 0o777 for part in (".isthmus", ".isthmus/cluster")] == [0o700, 0o700]


def test_error_of_the_home_is_reported_without_a_trace(home, capsys, monkeypatch):
    def read_only(*_):
        raise OSError(errno.EROFS, "Read-only file system", str(home / ".isthmus/up.lock"))

    monkeypatch.setattr(user_cluster, "here", read_only)
    assert main(["status"]) == 1
    assert f"Read-only file system: '{home}/.isthmus/up.lock'; look at that file" in capsys.readouterr().err


def test_path_is_printed_alone(own, capsys):
    assert main(["kubeconfig", "--path"]) == 0
    assert capsys.readouterr().out == f"{own}\n"


def test_kubeconfig_before_the_first_start_is_reported(home, capsys):
    assert main(["kubeconfig", "--path"]) == 1
    assert "`isthmus up` writes it" in capsys.readouterr().err


def test_what_a_command_makes_is_closed_whatever_the_umask(own, home):
    before = os.umask(0)
    try:
        main(["kubeconfig", "--merge", str(home / "some/where/config")])
        assert os.umask(0) == 0, "the caller's own umask is back"
    finally:
        os.umask(before)
    assert [(home / path).stat().st_mode & 0o077 for path in ("some", "some/where", "some/where/config")] == [0, 0, 0]


def test_merge_is_made_on_request(own, home, capsys):
    assert main(["kubeconfig", "--merge"]) == 0
    assert f"current in {home}/.kube/config" in capsys.readouterr().out


def test_purge_without_a_yes_does_nothing(own, capsys):
    """Standard input is no terminal here, so nobody can agree."""
    assert main(["down", "--purge"]) == 1
    assert "nothing was done; give --yes" in capsys.readouterr().err
    assert own.exists()


@pytest.mark.parametrize(
    "words",
    [
        *(["up", "--memory", size] for size in ("100", "2G")),
        *(["up", "--kubernetes", version] for version in ("latest", "1", "1.36.3.1", "1.36.x", "")),
        ["up", "--data", "tmpfs"],
        ["logs", "scheduler"],
    ],
)
def test_wrong_usage_ends_with_two(words):
    with pytest.raises(SystemExit) as stopped:
        main(words)
    assert stopped.value.code == 2


def test_logs_that_are_not_there_are_reported(home, capsys):
    assert main(["logs", "etcd"]) == 1
    assert "none yet: `isthmus up` starts the cluster" in capsys.readouterr().err


def test_daemon_is_asked_only_where_there_are_private_networks(home):
    assert user_cluster.here().network is None


def test_shells_complete_where_data_lie(capsys):
    assert main(["completion", "bash"]) == 0
    assert "_up___data_choices=(home node)" in capsys.readouterr().out


def test_shells_complete_versions_of_the_site(tmp_path, capsys):
    assert main(["completion", "bash"]) == 0
    images = [{"etcd": "3.6.14", "file": "/share/a", "kubernetes": version} for version in ("1.37.2", "1.36.3")]
    (tmp_path / "kubernetes.json").write_text(json.dumps({"images": images}, indent=4))
    script = capsys.readouterr().out.replace("/etc/isthmus/kubernetes.json", str(tmp_path / "kubernetes.json"))
    asked = ["bash", "-c", f"{script}\n_isthmus_versions 1.3; _isthmus_versions n"]
    assert subprocess.run(asked, capture_output=True, text=True).stdout.split() == ["1.37.2", "1.36.3", "newest"]
