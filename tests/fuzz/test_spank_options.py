"""The SPANK plugin with sanitizers: options and environment of a user, and answers of a daemon that is not well.

It runs as root in slurmd's prolog and in slurmstepd; a finding of a sanitizer ends the program that stands for them.
"""

import tempfile
from contextlib import closing, nullcontext
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.unit.spank.conftest import Plugin, built, host
from tests.unit.spank.fake_daemon import FakeDaemon, ok

__all__ = ["built", "host"]
# Each try is a program of its own.
FEWER = settings(settings.default, max_examples=max(15, settings.default.max_examples // 20))
# What the kernel takes as an environment: no NUL; bytes that are no UTF-8 come as surrogates.
TEXT = st.text(st.characters(min_codepoint=1, max_codepoint=0x2FF, exclude_categories=[]), max_size=300)
BYTES = st.binary(max_size=300).map(lambda data: data.replace(b"\0", b"").decode("utf-8", "surrogateescape"))
WORD = TEXT | BYTES | st.sampled_from(["private", "none", "flannel", "(null)", "", "%s%n%x", "x" * 70_000])
NAMES = ("SLURM_JOB_USER", "SLURM_JOB_NAME", "SLURM_JOB_NODELIST", "SLURM_JOB_PARTITION", "SPANK_ISTHMUS_RESERVATION")
REPLY = st.fixed_dictionaries(
    {"version": st.sampled_from([1, 1, 1, 2, "1", None]), "ok": st.sampled_from([True, True, False, 1, None])},
    optional={
        "state": st.sampled_from(["ready", "failed", "preparing", "absent", "", "x"]) | st.integers(),
        "netns": st.sampled_from(["/proc/self/ns/net", "/none", "x" * 5000]) | st.text(max_size=50),
        "leg": st.sampled_from(["il4096", "x" * 200]) | st.text(max_size=50),
        "resolv_conf": st.text(max_size=50) | st.just("/" * 5000) | st.none(),
        "error": st.text(max_size=50) | st.dictionaries(st.just("message"), st.text(max_size=3000)) | st.integers(),
    },
)
RAW = st.binary(max_size=200).map(lambda data: data.replace(b"\n", b"") + b"\n")


@pytest.fixture(scope="module")
def libraries(built, host):
    return built["sanitized"], host / "sanitized"


def ran(libraries, program, daemon=None, **environment):
    """Run one of Slurm's programs with an environment; a daemon answers, or none is there."""
    with tempfile.TemporaryDirectory() as folder:
        plugin = Plugin(*libraries, Path(folder))
        fake = FakeDaemon(plugin.socket, {op: [answer] for op, answer in daemon.items()}) if daemon else None
        with closing(fake) if fake else nullcontext():
            return plugin.run(program, **environment)


@FEWER
@given(st.sampled_from(["srun", "sbatch"]), WORD, WORD)
@example("srun", "%s%s%s%n", "")
@example("srun", "x" * 70_000, "y" * 70_000)
def test_submission_takes_or_refuses(libraries, program, option, reservation):
    reported = ran(libraries, program, HOST_OPTION=option, ISTHMUS_RESERVATION=reservation).reported
    is_driver = option in {"", "(null)", "private", "none", "flannel"}
    assert f"option={0 if is_driver else -1}" in reported


@FEWER
@given(WORD, st.dictionaries(st.sampled_from(NAMES), WORD))
@example("", {"SLURM_JOB_NODELIST": "x" * 70_000})
@example("", {"SPANK_ISTHMUS_RESERVATION": "../../x\n"})
def test_prolog_never_fails_a_node(libraries, option, environment):
    result = ran(libraries, "prolog", {"job_prepare": ok(state="preparing")}, HOST_OPTION=option, **environment)
    assert result.reported == ["rc=0"]


@FEWER
@given(REPLY | RAW)
@example({"version": 1, "ok": True, "state": "ready", "netns": "/" * 4096, "leg": "il1"})
@example({"version": 1, "ok": False, "error": {"message": "x" * 60_000}})
@example(b"[" * 1000 + b"\n")
def test_answer_of_a_daemon_starts_a_task_or_ends_it(libraries, reply):
    reported = ran(libraries, "step", {"job_get": reply}, HOST_OPTION="private").reported
    assert any(line.startswith(("task=", "setns")) for line in reported) or reported[-1] == "exit=0"
