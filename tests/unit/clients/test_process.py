"""Programs that take long, with real ones."""

import os
from pathlib import Path

import pytest

from isthmus.clients import process, skopeo
from isthmus.clients.process import Patience, ProcessError, StalledError
from isthmus.images.errors import ImageError, UnreachableError, explained
from isthmus.model.images import parse
from tests.support.wait import wait

DRIPS = """#!/bin/sh
for last; do :; done
layout=${last#*:}; layout=${layout%:image}; mkdir -p $layout
(while :; do printf x; sleep 0.05; done) >$layout/blob"""


def test_program_that_gets_on_is_waited_for(tmp_path):
    script = f"for i in 1 2 3 4 5 6; do sleep 0.1; echo $i >>{tmp_path}/grows; done; echo out; echo err >&2"
    patience = Patience(0.3, 1, lambda: process.folder_bytes(tmp_path))
    done = process.run_patiently(["sh", "-c", script], patience, {})
    assert (done.stdout, done.stderr) == ("out\n", "err\n")


def test_failure_has_both_streams():
    with pytest.raises(ProcessError) as error:
        process.run_patiently(["sh", "-c", "echo out; echo err >&2; exit 3"], Patience(10), {})
    assert (error.value.status, error.value.stdout, error.value.stderr) == (3, "out\n", "err\n")


@pytest.mark.parametrize(("ends", "why"), [("stalled", "got on by 0 bytes in 3 s"), ("unwanted", "is not wanted")])
def test_program_is_ended_with_all_that_it_started(tmp_path, ends, why):
    known = tmp_path / "pid"
    patience = Patience(3) if ends == "stalled" else Patience(30, unwanted=lambda: known.exists() and known.read_text())
    with pytest.raises(StalledError, match=why):
        process.run_patiently(["sh", "-c", f"sleep 600 & echo $! >{known}; wait"], patience, {})
    state = Path(f"/proc/{int(known.read_text())}/stat")
    wait(lambda: not state.exists() or state.read_text().rpartition(")")[2].split()[0] == "Z", timeout_s=10)


@pytest.fixture
def registry(tmp_path, monkeypatch):
    """Have a script be skopeo; return a function that gives what a pull reports when that fails."""

    def failure(script, ask):
        program = tmp_path / "bin/skopeo"
        program.parent.mkdir()
        program.write_text(script)
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
        image = parse("slow.test/web")
        with pytest.raises(ImageError) as failed, explained(image, "", ""):
            ask(image)
        return failed.value

    return failure


COPIES = {
    "whole": lambda image, folder: skopeo.copy(image, folder, None, stall_s=0.5),
    "in layers": lambda image, folder: skopeo.layout(image, folder, (), None, stall_s=0.5),
}


@pytest.mark.parametrize("copy", COPIES)
def test_registry_that_drips_is_given_up(registry, tmp_path, copy):
    """A byte now and then is no progress, however a pull copies."""
    failed = registry(DRIPS, lambda image: COPIES[copy](image, tmp_path / "work/oci"))
    assert isinstance(failed, UnreachableError)
    assert "slow.test sends next to nothing" in str(failed)


def test_registry_that_says_nothing_is_given_up(registry, tmp_path, monkeypatch):
    waited = []
    real = process.run

    def run(argv, *, timeout_s, **more):
        waited.append(timeout_s)
        return real(argv, timeout_s=timeout_s and 0.5, **more)

    monkeypatch.setattr(process, "run", run)
    failed = registry("#!/bin/sh\nexec sleep 20", lambda image: skopeo.manifest(image, None, tmp_path))
    assert "slow.test/web:latest cannot be had" in str(failed)
    assert "stopped after 0.5 s" in str(failed)
    assert waited == [skopeo.MANIFEST_TIMEOUT_S]
