"""How the plain Kubernetes of the benchmarks starts and stops: its programs are the test's, and log their words."""

import os
import subprocess

import pytest

from tests.support.clusters.cluster import ROOT

SCRIPT = ROOT / "tests/bench/reference_turns.sh"
# Each look at leases or nodes takes the next file, or the last one again.
KUBECTL = """#!/bin/bash
case "$*" in
*leases*) file=leases ;;
*custom*|*taints*) file=nodes ;;
*) exit 0 ;;
esac
count=$(($(cat $REFERENCE/$file.count 2>/dev/null || echo 0) + 1))
echo $count >$REFERENCE/$file.count
[ -f $REFERENCE/$file.$count ] || count=last
cat $REFERENCE/$file.$count
"""
OLD, NEW = "2020-01-01T00:00:00.000000Z", "2999-01-01T00:00:00.000000Z"


@pytest.fixture
def run(tmp_path):
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("systemctl", "ssh", "sysctl"):
        (programs / name).write_text(
            f'#!/bin/bash\necho {name} "$*" >>$REFERENCE/log\n[ ! -f $REFERENCE/{name}.fails ]\n'
        )
    (programs / "kubectl").write_text(KUBECTL)
    for program in programs.iterdir():
        program.chmod(0o755)
    (tmp_path / "workers").write_text("10.0.0.1\n10.0.0.2\n")

    def call(word):
        environment = os.environ | {
            "PATH": f"{programs}:{os.environ['PATH']}",
            "REFERENCE": str(tmp_path),
            "LIMIT_S": "1",
        }
        return subprocess.run(["bash", SCRIPT, word], env=environment, capture_output=True, text=True, timeout=30)

    return call


def answer(folder, leases, nodes):
    for name, looks in (("leases", leases), ("nodes", nodes)):
        for number, lines in enumerate(looks, 1):
            text = "".join(f"{line}\n" for line in lines)
            (folder / f"{name}.{number}").write_text(text)
            (folder / f"{name}.last").write_text(text)


def looks(folder):
    return int((folder / "leases.count").read_text())


def test_start_waits_until_each_worker_said_so_since(run, tmp_path):
    """States from before the stop say that all are ready."""
    answer(tmp_path, [[OLD, OLD], [NEW, OLD], [NEW, NEW]], [["True", "True"]])
    assert run("start").returncode == 0
    assert looks(tmp_path) == 3
    words = (tmp_path / "log").read_text().splitlines()
    assert words[0].startswith("systemctl start etcd kube-apiserver")
    assert sorted(line.rpartition("root@")[2] for line in words[1:]) == [
        f"10.0.0.{number} systemctl start containerd kubelet" for number in (1, 2)
    ]


@pytest.mark.parametrize("state", ["False", "Unknown", '[{"effect":"NoSchedule"}]True', ""])
def test_start_gives_up_on_a_worker_that_takes_no_pods(run, tmp_path, state):
    answer(tmp_path, [[NEW, NEW]], [["True", state]])
    done = run("start")
    assert done.returncode == 1
    assert "the workers are not ready after" in done.stderr


def test_stop_ends_kubelets_before_the_control_plane_and_puts_parameters_back(run, tmp_path):
    assert run("stop").returncode == 0
    words = (tmp_path / "log").read_text().splitlines()
    assert [line.split()[0] for line in words] == ["ssh", "ssh", "systemctl", "systemctl", "systemctl", "sysctl"]
    assert words[-2] == "systemctl stop etcd"
    assert words[-1] == f"sysctl --quiet --load {tmp_path}/sysctl.conf"


@pytest.mark.parametrize("word", ["start", "stop"])
def test_worker_that_cannot_be_reached_is_an_error(run, tmp_path, word):
    answer(tmp_path, [[NEW, NEW]], [["True", "True"]])
    (tmp_path / "ssh.fails").touch()
    assert run(word).returncode != 0


def test_other_words_are_refused(run):
    assert run("restart").returncode == 2
