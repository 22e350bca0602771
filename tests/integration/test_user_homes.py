"""The module user_homes as root: whatever a home holds, it leads nowhere."""

import os
import pwd
import subprocess
from pathlib import Path

import pytest

from tests.support import ansible_modules
from tests.support.attacks.home_traps import KEY, OUTSIDE_SCRIPT, OUTSIDE_STATE, SECRET, TRAPS
from tests.support.files.passable import passable

# ssh-keygen wants one that passwd(5) knows.
UID = pwd.getpwnam("nobody").pw_uid
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="to be another user needs root")


@pytest.fixture(scope="module")
def module():
    return ansible_modules.load("roles/base/library/user_homes.py")


@pytest.fixture
def outside(tmp_path):
    path = tmp_path / "outside"
    subprocess.run(["sh", "-c", OUTSIDE_SCRIPT.replace("OUTSIDE", str(path))], check=True)
    return path


@pytest.fixture
def account(tmp_path):
    (passable(tmp_path) / "home").mkdir(mode=0o755)
    return pwd.struct_passwd(("eve", "*", UID, UID, "", str(tmp_path / "home/eve"), "/bin/sh"))


@pytest.fixture
def bring(module, account):
    eve = {"name": "eve", "comment": "eve@demo", "keys": [KEY]}
    return lambda dry=False, **limits: module.bring(eve, account, dry=dry, **limits)


def as_eve(account, script):
    return subprocess.run(
        ["sh", "-c", script], cwd=account.pw_dir, user=UID, group=UID, extra_groups=[], check=True, capture_output=True
    )


def state(outside):
    script = OUTSIDE_STATE.replace("OUTSIDE", str(outside))
    return subprocess.run(["sh", "-c", script], check=True, capture_output=True, text=True).stdout


@pytest.mark.parametrize("name", TRAPS)
def test_trap_leads_nowhere_and_is_named(outside, account, bring, name):
    trap, home = TRAPS[name], account.pw_dir
    os.mkdir(home, 0o700)
    os.chown(home, UID, UID)
    as_eve(account, trap.script.replace("OUTSIDE", str(outside)))
    before = state(outside)
    _, problems = bring()
    assert state(outside) == before
    assert SECRET not in str(problems)
    assert [each for each in problems if each.startswith(f"{home}/{trap.named} ")] or not trap.named, problems
    assert bool(trap.named) == bool(problems)
    path = Path(home, ".ssh/authorized_keys")
    assert (path.is_file() and KEY in path.read_text()) == trap.has_keys
    assert bring()[0] is False, "a second run changes nothing"


def test_folder_of_another_is_left_alone(account, bring):
    os.makedirs(f"{account.pw_dir}/.ssh")
    os.chmod(f"{account.pw_dir}/.ssh", 0o777)  # noqa: S103 -- open to everybody
    changed, problems = bring()
    assert not changed
    assert "not the user's own" in problems[0]
    assert os.listdir(f"{account.pw_dir}/.ssh") == []


def test_missing_home_is_made_for_its_user_alone(account, bring):
    assert bring(dry=True) == (True, [])
    assert not os.path.exists(account.pw_dir)
    assert bring() == (True, [])
    shown = as_eve(account, "stat -c '%n %u %a' . .ssh .ssh/*; ssh-keygen -y -f .ssh/id_ed25519").stdout.decode()
    assert shown.splitlines()[:5] == [
        f". {UID} 700",
        f".ssh {UID} 700",
        *[f".ssh/{name} {UID} 600" for name in ("authorized_keys", "id_ed25519", "id_ed25519.pub")],
    ]
    assert f"{shown.splitlines()[5]}\n" in as_eve(account, "cat .ssh/authorized_keys").stdout.decode()
    assert set(os.listdir("/etc/skel")) <= set(os.listdir(account.pw_dir))
    assert bring() == (False, [])


def test_home_is_not_made_where_others_write(account, bring, tmp_path):
    (tmp_path / "home").chmod(0o1777)
    changed, problems = bring()
    assert "is not root's alone to write; make" in problems[0]
    assert not os.path.exists(account.pw_dir)
    assert (changed, len(problems)) == (True, 1) or not changed


def test_home_that_hangs_is_left(module, account, bring, monkeypatch):
    os.mkdir(account.pw_dir, 0o755)
    monkeypatch.setattr(module, "serve", lambda *_, **__: __import__("time").sleep(60))
    assert "did not answer" in bring(patience_s=0.5)[1][0]
