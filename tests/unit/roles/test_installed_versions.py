"""The module installed_versions: what runs is reported apart from what is installed."""

import json

import pytest

from tests.support import ansible_modules
from tests.support.fakes.dpkg import row, slurm

DPKG = (
    slurm("slurmctld", "24.11.5-4", want="hold")
    + slurm("slurm-client", "23.11.5-4")
    + slurm("libslurm42t64", "22.11.4-1")
    + slurm("slurmd", "22.05.1-1", want="deinstall", status="config-files")
    + row("munge", "0.5.16-1")
)
NODES = (
    "NodeName=c1 Arch=x86_64 CoresPerSocket=1 Version=24.11.5 State=IDLE Partitions=batch \n"
    "NodeName=c2 Arch=x86_64 Version=26.05.5 State=IDLE+DRAIN "
    "Reason=isthmus: upgrade 24.11.5 26.05 [root@2026-11-24T08:00:00]\n"
    "NodeName=c3 State=DOWN+NOT_RESPONDING Reason=Not responding [slurm@2026-11-24T08:00:00] Comment=old \n"
)


@pytest.fixture
def module():
    return ansible_modules.load("library/installed_versions.py")


def process(proc, number, program):
    (proc / str(number)).mkdir()
    (proc / str(number) / "exe").symlink_to(program)


def test_packages_are_those_of_slurm_that_are_installed(module, monkeypatch):
    monkeypatch.setattr(module.Asker, "answer", lambda self, *command: DPKG)
    monkeypatch.setattr(module.Asker, "is_newer", lambda self, one, other: one > other)
    assert module.Asker(None).slurm() == {
        "oldest": "23.11.5-4",
        "newest": "24.11.5-4",
        "held": False,
        "packages": {"slurmctld": "24.11.5-4", "slurm-client": "23.11.5-4"},
    }


def test_daemon_of_a_removed_file_is_not_current(module, tmp_path):
    process(tmp_path, 1, "/usr/sbin/slurmctld-wlm")
    process(tmp_path, 2, "/usr/sbin/slurmdbd (deleted)")
    process(tmp_path, 3, "/usr/sbin/slurmstepd (deleted)")
    process(tmp_path, 4, "/usr/bin/bash")
    (tmp_path / "5").mkdir()
    (tmp_path / "self").mkdir()
    assert module.current(tmp_path) == ["slurmctld"]


def test_one_old_process_makes_a_daemon_old(module, tmp_path):
    process(tmp_path, 1, "/usr/sbin/slurmd")
    process(tmp_path, 2, "/usr/sbin/slurmd (deleted)")
    assert module.current(tmp_path) == []


def test_nodes_have_version_and_reason(module):
    assert module.nodes(NODES) == {
        "c1": {"version": "24.11.5", "reason": ""},
        "c2": {"version": "26.05.5", "reason": "isthmus: upgrade 24.11.5 26.05"},
        "c3": {"version": "", "reason": "Not responding"},
    }


def test_versions_are_in_debians_order(module):
    newer = lambda one, other: len(one) > len(other)  # noqa: E731
    assert module.ordered_versions({"bbb", "a", "cc"}, newer) == ["a", "cc", "bbb"]


@pytest.mark.parametrize(
    ("settings", "version"),
    [
        (json.dumps({"versions": {"kube-apiserver": "v1.36.3"}}), "1.36.3"),
        (json.dumps({"versions": {"kube-apiserver": "1.36.3"}}), "1.36.3"),
        ("", ""),
        ("{", ""),
        ("[]", ""),
    ],
)
def test_kubernetes_is_what_isthmus_up_would_start(module, settings, version):
    assert module.kubernetes(settings) == version


def test_member_that_does_not_answer_has_no_version(module):
    assert module.running("http://127.0.0.1:1/metrics", module.open_url) == ""
    assert module.running("", module.open_url) == ""


def test_host_without_any_of_it(module, monkeypatch, tmp_path):
    monkeypatch.setattr(module, "PROC", tmp_path)
    reported = ansible_modules.run(module)
    assert (reported["changed"], reported["current"], reported["database"], reported["nodes"]) == (
        False,
        [],
        "none",
        {},
    )
