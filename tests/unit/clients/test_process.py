"""Programs that take long, with real ones."""

import os
from pathlib import Path

import pytest

from isthmus.clients import process, skopeo
from isthmus.clients.process import Patience, ProcessError, StalledError
from isthmus.images.errors import UnreachableError, explained
from isthmus.model.images import parse
from tests.support.wait import wait

DRIPS = """#!/bin/sh
for last; do :; done
layout=${last#dir:}; mkdir -p $layout
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


@pytest.mark.parametrize("ends", ["stalled", "unwanted"])
def test_program_is_ended_with_all_that_it_started(tmp_path, ends):
    known = tmp_path / "pid"
    patience = Patience(3) if ends == "stalled" else Patience(60, unwanted=lambda: known.exists() and known.read_text())
    with pytest.raises(StalledError):
        process.run_patiently(["sh", "-c", f"sleep 600 & echo $! >{known}; wait"], patience, {})
    state = Path(f"/proc/{int(known.read_text())}/stat")
    wait(lambda: not state.exists() or state.read_text().rpartition(")")[2].split()[0] == "Z", timeout_s=10)


def test_registry_that_drips_is_given_up(tmp_path, monkeypatch):
    program = tmp_path / "bin/skopeo"
    program.parent.mkdir()
    program.write_text(DRIPS)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    image = parse("slow.test/web")
    with pytest.raises(UnreachableError, match=r"slow\.test sends next to nothing"), explained(image, "", ""):
        skopeo.copy(image, tmp_path / "work/oci", None, stall_s=0.5)
