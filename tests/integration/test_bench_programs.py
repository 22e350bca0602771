"""The programs of the benchmarks over a real MPI: right results with any number of ranks, and words for wrong input."""

import json
import os
import subprocess
from pathlib import Path

import pytest

import isthmus.bench

SOURCE = Path(isthmus.bench.__file__).with_name("programs")
MPI = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_mpi_yield_when_idle": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
}


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("programs")
    made = subprocess.run(["make", "-C", SOURCE, f"OUT={folder}"], capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    return folder


@pytest.fixture
def start(programs):
    """Start ranks of a program."""

    def started(ranks, name, *arguments):
        words = ["mpirun", "-n", str(ranks), programs / name, *arguments]
        return subprocess.run(words, capture_output=True, text=True, timeout=300, env=os.environ | MPI)

    return started


def figures(done):
    assert done.returncode == 0, done.stderr
    (line,) = done.stdout.splitlines()
    return json.loads(line)


@pytest.mark.parametrize("ranks", [1, 3, 4])
def test_ep_finds_the_published_sums(start, ranks):
    found = figures(start(ranks, "ep", "S"))
    assert (found["verified"], found["ranks"], found["pairs"]) == (True, ranks, 13176389)
    assert found["sum_x"] == pytest.approx(-3.247834652034740e3, rel=1e-10)
    assert sum(found["counts"]) == found["pairs"]


def test_ep_is_what_its_name_says(programs, start):
    (programs / "ep.S.2").symlink_to("ep")
    assert figures(start(2, "ep.S.2"))["class"] == "S"
    refused = start(1, "ep.S.2")
    assert refused.returncode == 2
    assert "ep.S.2 is for 2 ranks, and there are 1" in refused.stderr


@pytest.mark.parametrize("words", [["X"], ["s"], [], ["S", "S"], ["SS"], [""]])
def test_ep_without_a_known_class_is_refused(start, words):
    refused = start(2, "ep", *words)
    assert refused.returncode == 2
    assert refused.stderr.count("say S, W, A, B or C") == 1


@pytest.mark.parametrize("ranks", [1, 2, 3])
@pytest.mark.parametrize("size", [("1", "1"), ("7", "3"), ("100", "8"), ("333", "16")])
def test_hpl_solves_the_same_system_with_any_number_of_ranks(start, ranks, size):
    found = figures(start(ranks, "hpl", *size))
    assert (found["ranks"], found["unknowns"], found["verified"]) == (ranks, int(size[0]), True)
    assert found["residual"] < 1


@pytest.mark.parametrize("words", [[], ["100"], ["0", "8"], ["100", "x"], ["1e3", "8"]])
def test_hpl_without_a_size_is_refused(start, words):
    refused = start(2, "hpl", *words)
    assert refused.returncode == 2
    assert refused.stderr.count("say both: hpl 1500 80") == 1


def test_hpcg_finds_the_same_with_any_number_of_ranks(start):
    found = {ranks: figures(start(ranks, "hpcg", "--global", "48,32,16", "--sets", "1")) for ranks in (1, 2, 6, 16)}
    for ranks, each in found.items():
        grid, local = each["grid"], each["local"]
        assert [count * points for count, points in zip(grid, local, strict=True)] == [48, 32, 16]
        assert (each["ranks"], each["verified"]) == (ranks, True)
        assert each["error"] < 1e-9
        assert each["asymmetry_cycle"] < 1e-12


def test_hpcg_grows_with_its_ranks(start):
    found = figures(start(4, "hpcg", "--local", "16,8,8", "--seconds", "1"))
    assert found["local"] == [16, 8, 8]
    assert found["iterations"] == 50 * found["sets"]
    assert found["gflops"] > 0


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ([], "wrong options"),
        (["--local", "16,16", "--sets", "1"], "wrong options"),
        (["--local", "16,16,16,16", "--sets", "1"], "wrong options"),
        (["--local", "16,16,16", "--sets", "0"], "wrong options"),
        (["--sets", "1", "--seconds", "1"], "wrong options"),
        (["--local", "12,16,16", "--sets", "1"], "no boxes of multiples of eight"),
        (["--global", "24,24,24", "--sets", "1"], "no boxes of multiples of eight"),
    ],
)
def test_hpcg_refuses_what_it_cannot_divide(start, words, problem):
    refused = start(2, "hpcg", *words)
    assert refused.returncode == 2
    assert refused.stderr.count(problem) == 1


def test_ranks_that_know_nothing_of_one_another_are_no_success(start):
    assert figures(start(3, "init")) == {"program": "init", "ranks": 3, "verified": True}


def test_rank_says_where_and_when_and_keeps_the_status(programs):
    words = [programs / "rank", "sh", "-c", "echo hello; exit 3"]
    done = subprocess.run(words, capture_output=True, text=True, env=os.environ | {"SLURMD_NODENAME": "c7"})
    assert done.returncode == 3
    begin, hello, end = done.stdout.splitlines()
    assert begin.startswith("rank begins c7 ")
    assert hello == "hello"
    assert end.startswith("rank ends c7 ") and end.endswith(" 3")


@pytest.fixture
def scripted(tmp_path, monkeypatch):
    """Run a script of the folder, where what it starts is another one."""

    def started(name, program, script, *arguments):
        (tmp_path / program).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / program).chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
        done = subprocess.run(["sh", SOURCE / f"{name}.sh", *arguments], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return started


@pytest.mark.parametrize(("upper", "verified"), [("64", True), ("100", True), ("1000", False), ("8", False)])
def test_netpipe_reports_its_points(scripted, upper, verified):
    """Bytes, MB/s of Mbit/s, microseconds of seconds; it counts when it came to the size that was asked for."""
    script = (
        'for word; do [ "$before" != -o ] || out=$word; before=$word; done; printf "1 8 2e-6\\n64 400 4e-6\\n" >$out'
    )
    found = scripted("netpipe", "NPopenmpi", script, upper, "10")
    assert (found["points"], found["verified"]) == ([[1, 1, 2], [64, 50, 4]], verified)


SOLVED = """Num processes:              4
  Total degrees of freedom:               {unknowns}
Linear solve {outcome} due to CONVERGED_RTOL iterations 12
*** Number of Krylov iterations: 12
*** Solution norm:  1.25
Time (sec):           2.0  1.000  2.0
Flops:                1e6  1.000  1e6  8e9"""


@pytest.mark.parametrize(
    ("unknowns", "outcome", "verified"),
    [(3000, "converged", True), (3000, "did not converge", False), (9000, "converged", False)],
)
def test_fe_counts_when_it_converged_on_what_was_asked(scripted, unknowns, outcome, verified):
    script = f"cat <<'END'\n{SOLVED.format(unknowns=unknowns, outcome=outcome)}\nEND"
    found = scripted("fe", "dolfinx-scaling-test", script, "3000")
    figures = [found[name] for name in ("ranks", "unknowns", "iterations", "norm", "seconds", "gflops")]
    assert figures == [4, unknowns, 12, 1.25, 2, 4]
    assert found["verified"] is verified
