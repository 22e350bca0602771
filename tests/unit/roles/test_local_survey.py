"""The module local_survey: which keys are lacking, and which processes podman only trusts in."""

import shutil
import subprocess

import pytest

from tests.support import ansible_modules

BLOB, OTHER = "AAAAC3Nza", "AAAAC3Nzb"
PUBLIC, DERIVED = f"ssh-ed25519 {BLOB} c1 of demo\n", f"ssh-ed25519 {BLOB}\n"
ANSWERS = {
    "podman ps": '[{"Names": ["demo-c1"], "Pid": 1, "Id": "x", "State": "running"}]',
    "podman info": '{"host": {"cgroupVersion": "v2"}}',
    "podman images": "localhost/image:1\nlocalhost/image:2\n",
    "ip -json": "[]",
}


@pytest.fixture
def module():
    return ansible_modules.load("roles/provider_local/library/local_survey.py")


@pytest.fixture
def survey(module, monkeypatch):
    """Run the module on a machine where podman has a network, no volume and two images; returns its result."""

    def run_command(_, argv, **_options):
        if argv[0] == "ssh-keygen":
            return 0, subprocess.run(argv, capture_output=True, text=True, check=False).stdout, ""
        if argv[2] == "exists":
            return (0 if argv[1] == "network" else 1), "", ""
        return 0, ANSWERS[" ".join(argv[:2])], ""

    monkeypatch.setattr(module.AnsibleModule, "run_command", run_command)
    return lambda **keys: ansible_modules.run(module, cluster="demo", image="localhost/image", keys=keys)


@pytest.mark.parametrize(
    ("mode", "comment", "public", "derived", "whole"),
    [
        (0o100600, "c1 of demo", PUBLIC, DERIVED, True),
        (0o100640, "c1 of demo", PUBLIC, DERIVED, False),
        (0o100600, "c2 of demo", PUBLIC, DERIVED, False),
        (0o100600, "c1 of demo", PUBLIC, f"ssh-ed25519 {OTHER}\n", False),
        (0o100600, "c1 of demo", PUBLIC.replace("ed25519", "rsa"), DERIVED.replace("ed25519", "rsa"), False),
        (0o100600, "c1 of demo", "", "", False),
        (0o100600, "c1 of demo", PUBLIC, "", False),
    ],
)
def test_key_is_whole_with_its_mode_comment_and_public_half(module, mode, comment, public, derived, whole):
    assert module.is_whole(mode, comment, public, derived) is whole


def test_only_processes_that_are_there_have_control_groups(module, tmp_path):
    (tmp_path / "7").mkdir()
    (tmp_path / "7/cgroup").write_text("0::/libpod-abc\n")
    assert module.cgroups([{"Pid": 7}, {"Pid": 8}, {"Pid": 0}], tmp_path) == "0::/libpod-abc\n"


def test_all_that_is_asked_is_reported_in_one_go(survey):
    reported = survey()
    assert (reported["network"], reported["home"], reported["changed"]) == (True, False, False)
    assert reported["images"] == ["localhost/image:1", "localhost/image:2"]
    assert reported["info"]["host"]["cgroupVersion"] == "v2"
    assert reported["containers"][0]["Names"] == ["demo-c1"]
    assert "CapEff:" in reported["status"]
    assert "Max open files" in reported["limits"]


def test_watchers_of_all_processes_are_counted(module, tmp_path):
    for process, links in {"7": ["anon_inode:inotify", "/dev/null"], "8": ["anon_inode:inotify"], "9": []}.items():
        (tmp_path / process / "fd").mkdir(parents=True)
        for number, target in enumerate(links):
            (tmp_path / process / "fd" / str(number)).symlink_to(target)
    (tmp_path / "sys/fs/inotify").mkdir(parents=True)
    (tmp_path / "sys/fs/inotify/max_user_instances").write_text("128\n")
    assert module.watchers(tmp_path) == {"used": 2, "limit": 128}


@pytest.mark.skipif(not shutil.which("ssh-keygen"), reason="needs ssh-keygen")
def test_keys_that_are_not_there_or_not_whole_are_lacking(survey, tmp_path):
    made, none, foreign = (str(tmp_path / name) for name in ("made", "none", "foreign"))
    for path in (made, foreign):
        make = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "made of demo", "-f", path]
        subprocess.run(make, check=True, capture_output=True)
    assert survey(**{made: "made of demo", none: "none", foreign: "another's"})["keys_lacking"] == [none, foreign]


def test_machine_without_podman_is_reported_what_to_do(module, monkeypatch):
    def absent(_, argv, **_options):
        raise FileNotFoundError(argv[0])

    monkeypatch.setattr(module.AnsibleModule, "run_command", absent)
    reported = ansible_modules.run(module, cluster="demo", image="localhost/image", keys={})
    assert reported["failed"]
    assert "podman cannot be run" in reported["msg"]
    assert "run without --check once" in reported["msg"]
