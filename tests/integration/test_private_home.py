"""The commands in a home that cannot be worked with: another's folder in it, or a file system that is read-only."""

import os
import pwd
import shlex
import subprocess
import sys

import pytest

from tests.support.files.passable import passable

NOBODY = pwd.getpwnam("nobody").pw_uid
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="mounts and other users need root")
CLI = """
import pathlib, sys
from isthmus.cli.main import main
from isthmus.controlplane import settings
settings.read.__defaults__ = (pathlib.Path(sys.argv[1]),)
sys.exit(main(sys.argv[2:]))
"""
SETTINGS = '{"schema": 1, "image": "/opt/image", "driver": "none"}'


@pytest.fixture
def home(tmp_path):
    (passable(tmp_path) / "kubernetes.json").write_text(SETTINGS)
    (tmp_path / "home").mkdir()
    os.chown(tmp_path / "home", NOBODY, NOBODY)
    return tmp_path / "home"


def isthmus(home, command, before="true"):
    words = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", sys.executable, "-c", CLI]
    asked = shlex.join([*words, str(home.parent / "kubernetes.json"), *command])
    script = f"mount --bind {home} {home} && {before} && exec {asked}"
    environment = {**os.environ, "HOME": str(home), "TMPDIR": "/tmp", "PYTHONPATH": ":".join(sys.path)}
    return subprocess.run(
        ["unshare", "--mount", "sh", "-c", script], env=environment, capture_output=True, text=True, timeout=60
    )


@pytest.mark.parametrize("command", [["up"], ["pull", "debian:13"], ["status"]], ids=" ".join)
def test_folder_of_another_is_refused_before_anything_changes(home, command):
    (home / ".isthmus").mkdir()
    os.chmod(home / ".isthmus", 0o777)  # noqa: S103 -- open to everybody
    refused = isthmus(home, command)
    assert refused.returncode == 1
    assert f"{home}/.isthmus belongs to the user with uid 0, not to you; move it away" in refused.stderr
    assert list((home / ".isthmus").iterdir()) == []


@pytest.mark.parametrize("made", [True, False], ids=["used before", "new"])
@pytest.mark.parametrize("command", [["up"], ["pull", "debian:13"], ["doctor"]], ids=" ".join)
def test_read_only_home_is_reported_without_a_trace(home, command, made):
    if made:
        (home / ".isthmus/cluster/logs").mkdir(parents=True)
        subprocess.run(["chown", "-R", str(NOBODY), home], check=True)
    ended = isthmus(home, command, before=f"mount -o remount,bind,ro {home}")
    assert "Traceback" not in ended.stderr
    assert ended.returncode == 1
    assert "ead-only file system" in ended.stdout + ended.stderr
