"""The modules slurm_state and slurm_answers: they report a host as it is."""

import grp
import os
import pwd

import pytest

from isthmus.filters.slurm.files import slurm_protected
from tests.support import ansible_modules
from tests.support.fakes.dpkg import row, slurm

OWNER = f"{pwd.getpwuid(os.getuid()).pw_name}:{grp.getgrgid(os.getgid()).gr_name}"


@pytest.fixture
def module(monkeypatch, tmp_path):
    loaded = ansible_modules.load("roles/slurm/library/slurm_state.py")
    monkeypatch.setattr(loaded, "CONF", tmp_path)
    monkeypatch.setattr(loaded, "ALTERNATIVES", tmp_path)
    monkeypatch.setattr(loaded, "OPENMPI", tmp_path / "params.conf")
    monkeypatch.setattr(loaded, "HARDWARE", tmp_path / "hardware.json")
    return loaded


def test_new_host_has_nothing(module, tmp_path):
    secret = str(tmp_path / "munge.key")
    reported = ansible_modules.run(module, secrets=[secret], alternatives=["mpi"])
    assert (reported["live"], reported["openmpi"], reported["changed"]) == (False, "", False)
    assert (reported["secrets"], reported["alternatives"]) == ({secret: ""}, {"mpi": ""})


def test_live_controller_is_reported(module, tmp_path):
    (tmp_path / "slurmdbd.conf").touch()
    (tmp_path / "params.conf").write_text("a = b\n")
    (tmp_path / "mpi").symlink_to("/usr/bin/mpicc.openmpi")
    reported = ansible_modules.run(module, alternatives=["mpi"])
    assert (reported["live"], reported["openmpi"]) == (True, "a = b\n")
    assert reported["alternatives"] == {"mpi": "/usr/bin/mpicc.openmpi"}


def test_packages_of_slurm_are_reported_with_those_that_apt_may_move(module, monkeypatch, tmp_path):
    reported = slurm("slurmd", "24.11.5-4", want="hold") + slurm("sackd", "24.11.5-4") + row("munge")
    reported += slurm("libslurm42t64", "23.11.4-1", want="hold")
    assert module.packages(reported) == {"version": "24.11.5-4", "loose": ["sackd"]}
    (tmp_path / "joined.json").touch()
    monkeypatch.setattr(module, "JOINED", tmp_path / "joined.json")
    assert module.packages(reported)["loose"] == []
    assert module.packages("") == {"version": "", "loose": []}


def test_recorded_hardware_is_reported(module, tmp_path):
    assert ansible_modules.run(module)["hardware"] == {}
    (tmp_path / "hardware.json").write_text('{"c1": {"memtotal_mb": 8000}}')
    assert ansible_modules.run(module)["hardware"] == {"c1": {"memtotal_mb": 8000}}


@pytest.mark.parametrize("content", ["{", "[1]", "3"])
def test_damaged_record_is_refused_with_the_remedy(module, tmp_path, content):
    (tmp_path / "hardware.json").write_text(content)
    with pytest.raises(ValueError, match=r"hardware.json is no record of nodes .*; remove it"):
        module.hardware(tmp_path / "hardware.json")


@pytest.mark.parametrize(
    ("content", "mode", "right"), [("key", 0o600, True), ("other", 0o600, False), ("key", 0o640, False)]
)
def test_secret_is_right_with_its_content_owner_and_mode(module, tmp_path, content, mode, right):
    file = tmp_path / "secret"
    file.write_text(content)
    file.chmod(mode)
    reported = ansible_modules.run(module, secrets=[str(file)])["secrets"][str(file)]
    assert (reported == slurm_protected("key", f"{OWNER} 0600")) is right
    assert content not in reported


def test_commands_are_answered_by_name():
    module = ansible_modules.load("roles/slurm/library/slurm_answers.py")
    reported = ansible_modules.run(module, commands={"one": ["echo", "1"], "two": ["printf", "a|b\\nc|d\\n"]})
    assert (reported["answers"], reported["changed"]) == ({"one": "1", "two": "a|b\nc|d"}, False)


def test_first_command_that_fails_is_reported():
    module = ansible_modules.load("roles/slurm/library/slurm_answers.py")
    reported = ansible_modules.run(module, commands={"one": ["sh", "-c", "echo why >&2; exit 1"]})
    assert reported["failed"]
    assert "echo why >&2; exit 1 failed: why; run it on this host" in reported["msg"]
