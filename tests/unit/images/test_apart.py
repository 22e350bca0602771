"""A pull in a process of its own says and fails as one in this process does."""

import contextlib
import io
import json
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from isthmus.clients import process
from isthmus.clients.process import Finished, Patience, StalledError
from isthmus.images import apart, errors, pull
from isthmus.model import images
from tests.support.fakes.image_tools import DIGEST, REGISTRY, FakeTools

IMAGE = images.parse(f"{REGISTRY}/isthmus/busybox")


@pytest.fixture
def place(tmp_path):
    (tmp_path / "scratch").mkdir()
    return pull.Workspace(tmp_path / ".isthmus/images", tmp_path / "scratch", None, "amd64")


@pytest.fixture
def child(monkeypatch):
    """Run in this process what would be another, with fakes of the programs that it starts."""
    fake = FakeTools()
    fake.stand_in(monkeypatch)
    inner = process.run_patiently

    def run(argv, patience, environment, feed=None):
        if argv[1:] != ["-I", "-m", "isthmus.images.apart"]:
            return inner(argv, patience, environment)
        ours, theirs = os.pipe()
        feed(theirs)
        os.close(theirs)
        with os.fdopen(ours) as request, contextlib.redirect_stdout(io.StringIO()) as answer:
            monkeypatch.setattr(sys, "stdin", request)
            before = signal.getsignal(signal.SIGTERM)
            try:
                apart.main()
            finally:
                signal.signal(signal.SIGTERM, before)
        return Finished(answer.getvalue(), "")

    monkeypatch.setattr(process, "run_patiently", run)
    return fake


def test_answer_is_that_of_a_pull(child, place):
    words = []
    pulled = apart.pull(IMAGE, place, words.append)
    assert (pulled.digest, pulled.cached, pulled.path.read_bytes()[:4]) == (DIGEST, False, b"hsqs")
    assert words == ["asking for", "downloading", "unpacking", "packing"]
    assert apart.pull(IMAGE, place, words.append).cached


@pytest.mark.parametrize(
    ("reference", "kind"),
    [(f"{REGISTRY}/isthmus/none", errors.UnknownImageError), ("other:1/x", errors.UnreachableError)],
)
def test_failure_is_of_the_same_kind(child, place, reference, kind):
    with pytest.raises(kind, match="; "):
        apart.pull(images.parse(reference), place, lambda _: None)


def test_credentials_and_ids_are_handed_on(child, place, tmp_path):
    (tmp_path / "wrong.json").write_text("{}")
    with pytest.raises(errors.DeniedError, match=r"wrong\.json"):
        apart.pull(
            IMAGE, pull.Workspace(place.cache, place.scratch, tmp_path / "wrong.json", "amd64", root_alone=True), print
        )


def test_real_process_is_ended_when_nobody_waits(tmp_path):
    gone = threading.Event()
    script = "import signal,sys,time,pathlib; f=pathlib.Path(sys.argv[1])\n"
    script += "signal.signal(signal.SIGTERM, lambda *_: (f.unlink(), sys.exit(1)))\nf.touch(); time.sleep(1000)"
    mark = tmp_path / "mark"

    def unwanted():
        if mark.exists():
            gone.set()
        return gone.is_set()

    began_s = time.monotonic()
    with pytest.raises(StalledError):
        process.run_patiently([sys.executable, "-c", script, mark], Patience(3600, unwanted=unwanted, grace_s=30), {})
    assert time.monotonic() - began_s < 30
    # It had the time to clean up.
    assert not mark.exists()


def test_module_runs_alone(tmp_path):
    place = {"cache": f"{tmp_path}/.isthmus/images", "scratch": str(tmp_path), "authfile": None, "arch": "amd64"}
    request = json.dumps({"image": "oci-archive:none.tar", "place": place})
    argv = [sys.executable, "-I", "-m", "isthmus.images.apart"]
    done = subprocess.run(argv, input=request, capture_output=True, text=True, timeout=60, cwd=tmp_path)
    assert json.loads(done.stdout)["error"].endswith("Error"), done.stderr
