"""A home that turns read-only while an image is pulled into it: an error that says so, and never half an image."""

import os
import subprocess
import sys

import pytest

from tests.support.fakes.image_tools import REGISTRY

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="mounts need root")
# The programs' own files are open by then, and what they write still arrives: a new mount is what others see.
PULL = """
import subprocess, sys
from pathlib import Path
from isthmus.clients import process
from isthmus.images import errors, pull
from isthmus.images.workspace import Workspace
from isthmus.model import images
from tests.support.fakes.image_tools import FakeTools

home, moment, reference = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
tools = FakeTools()

def turn(home):
    subprocess.run(["mount", "--bind", home, home], check=True)
    subprocess.run(["mount", "-o", "remount,bind,ro", home], check=True)

def run(argv, **how):
    before = len(tools.calls)
    done = tools(argv, **how)
    if moment in tools.calls[before][:2]:
        turn(home)
    return done

process.run = run
process.run_patiently = lambda argv, *_: run(argv)
workspace = Workspace(home / ".isthmus/images", home.parent / "scratch", None, "amd64")
try:
    pull.pull(images.parse(reference), workspace, lambda word: None)
    sys.exit("the pull did not fail")
except errors.ImageError as error:
    print(error)
print(*(path.name for path in workspace.cache.glob("*.squashfs")))
subprocess.run(["umount", home], check=True)
moment = "never"
pulled = pull.pull(images.parse(reference), workspace, lambda word: None)
print(pulled.path.read_bytes()[:4].decode(), *(path.suffix for path in workspace.cache.iterdir() if path.suffix))
"""


@pytest.mark.parametrize("moment", ["inspect", "copy"])
def test_home_that_turns_read_only_leaves_no_half_image(tmp_path, moment):
    (tmp_path / "scratch").mkdir()
    home = tmp_path / "home"
    home.mkdir()
    script = f'mount -t tmpfs none {home} && exec "$@"'
    words = [sys.executable, "-c", PULL, str(home), moment, f"{REGISTRY}/isthmus/busybox"]
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", script, "sh", *words],
        env={**os.environ, "PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    reported, left, again = done.stdout.splitlines()
    assert "ead-only file system" in reported
    assert "; " in reported
    assert left == ""
    assert sorted(again.split()) == [".lock", ".squashfs", "hsqs"]
