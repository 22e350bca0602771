"""The modules slurm_state and slurm_answers: what they tell of a host is what is there."""

import grp
import os
import pwd

import pytest

from isthmus.filters.slurm.files import slurm_protected
from tests.support import ansible_modules

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
    told = ansible_modules.run(module, secrets=[secret], alternatives=["mpi"])
    assert (told["live"], told["openmpi"], told["changed"]) == (False, "", False)
    assert (told["secrets"], told["alternatives"]) == ({secret: ""}, {"mpi": ""})


def test_live_controller_is_told(module, tmp_path):
    (tmp_path / "slurmdbd.conf").touch()
    (tmp_path / "params.conf").write_text("a = b\n")
    (tmp_path / "mpi").symlink_to("/usr/bin/mpicc.openmpi")
    told = ansible_modules.run(module, alternatives=["mpi"])
    assert (told["live"], told["openmpi"]) == (True, "a = b\n")
    assert told["alternatives"] == {"mpi": "/usr/bin/mpicc.openmpi"}


def test_packages_of_slurm_are_told_with_those_that_apt_may_move(module, monkeypatch, tmp_path):
    rows = ["slurm-wlm slurmd 24.11.5-4 hold", "slurm-wlm sackd 24.11.5-4 install", "munge munge 1 install"]
    rows += ["slurm-wlm libslurm42t64 23.11.4-1 hold"]
    told = "".join(f"{row} installed\n" for row in rows)
    assert module.packages(told) == {"version": "24.11.5-4", "loose": ["sackd"]}
    (tmp_path / "joined.json").touch()
    monkeypatch.setattr(module, "JOINED", tmp_path / "joined.json")
    assert module.packages(told)["loose"] == []
    assert module.packages("") == {"version": "", "loose": []}


def test_recorded_hardware_is_told(module, tmp_path):
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
    told = ansible_modules.run(module, secrets=[str(file)])["secrets"][str(file)]
    assert (told == slurm_protected("key", f"{OWNER} 0600")) is right
    assert content not in told


def test_commands_are_answered_by_name():
    module = ansible_modules.load("roles/slurm/library/slurm_answers.py")
    told = ansible_modules.run(module, commands={"one": ["echo", "1"], "two": ["printf", "a|b\\nc|d\\n"]})
    assert (told["answers"], told["changed"]) == ({"one": "1", "two": "a|b\nc|d"}, False)


def test_first_command_that_fails_is_told():
    module = ansible_modules.load("roles/slurm/library/slurm_answers.py")
    told = ansible_modules.run(module, commands={"one": ["sh", "-c", "echo why >&2; exit 1"]})
    assert told["failed"]
    assert "echo why >&2; exit 1 failed: why; run it on this host" in told["msg"]
