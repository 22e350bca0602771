"""A plugin gets a clean environment, so much time and room for its answer, and ends with all that it started."""

import sys
import time

import pytest

from isthmus.clients.cni.bounded import run_bounded
from isthmus.clients.process import ProcessError
from tests.support.wait import wait


def python(script, **changes):
    given = {"timeout_s": 20, "environment": {"CNI_COMMAND": "ADD"}, "input_text": "{}", **changes}
    return run_bounded([sys.executable, "-ISc", script], **given)


def test_program_reads_its_input_and_is_answered():
    said = python("import sys; print(sys.stdin.read()); print('why', file=sys.stderr)", input_text='{"a": "ä"}')
    assert (said.stdout, said.stderr) == ('{"a": "ä"}\n', "why\n")


def test_environment_is_what_was_given_and_nothing_of_the_daemons(monkeypatch):
    monkeypatch.setenv("CNI_ARGS", "x")
    monkeypatch.setenv("LD_PRELOAD", "")
    said = python("import os; print(sorted(set(os.environ) - {'LC_CTYPE'}))")
    assert said.stdout == "['CNI_COMMAND', 'PATH']\n"


def test_failure_has_status_and_both_streams():
    with pytest.raises(ProcessError, match="ended with status 3") as failed:
        python("import sys; print('{}'); sys.exit(3)")
    assert (failed.value.status, failed.value.stdout) == (3, "{}\n")


def test_program_that_is_not_there_is_an_error():
    with pytest.raises(ProcessError, match="No such file"):
        run_bounded(["/nonexistent/x"], timeout_s=1, environment={}, input_text="")


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_program_that_never_stops_talking_is_ended(stream):
    script = f"import sys\nwhile True: sys.{stream}.write('x' * 65536)"
    with pytest.raises(ProcessError, match="wrote more than a plugin has to say"):
        python(script)


def test_program_that_takes_too_long_is_ended_with_what_it_started(tmp_path):
    """A child that holds the output open: the plugin that delegates is the usual one."""
    script = (
        "import os, pathlib, subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-ISc', 'import time; time.sleep(600)'])\n"
        f"pathlib.Path({str(tmp_path / 'pid')!r}).write_text(str(child.pid))\n"
    )
    began_s = time.monotonic()
    with pytest.raises(ProcessError, match=r"stopped after 1\.5 s"):
        python(script, timeout_s=1.5)
    assert time.monotonic() - began_s < 15
    wait(lambda: not _runs((tmp_path / "pid").read_text()), timeout_s=20)


def _runs(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_program_that_closed_its_output_has_no_more_time():
    with pytest.raises(ProcessError, match=r"stopped after 0\.5 s"):
        python("import os, time; os.close(1); os.close(2); time.sleep(60)", timeout_s=0.5)
