"""A shell in a job: srun's words, and what it gets of the environment."""

import os
import subprocess
import sys

import pytest

from isthmus.cli.commands.shell import environment, step
from isthmus.cli.main import main

ALWAYS = ["--overlap", "--nodes=1", "--ntasks=1", "--quiet"]


@pytest.mark.parametrize(
    ("job", "command", "is_terminal", "words"),
    [
        ("12", [], True, ["--jobid=12", *ALWAYS, "--pty", "--", "/bin/zsh", "-l"]),
        ("12", ["ss", "-ltn"], False, ["--jobid=12", *ALWAYS, "--", "ss", "-ltn"]),
        ("12.c2", [], False, ["--jobid=12", *ALWAYS, "--nodelist=c2", "--", "/bin/zsh", "-l"]),
        (
            "12_3.gpu-1.example.org",
            ["id"],
            False,
            ["--jobid=12_3", *ALWAYS, "--nodelist=gpu-1.example.org", "--", "id"],
        ),
        ("12+1", ["--pty"], False, ["--jobid=12+1", *ALWAYS, "--", "--pty"]),
    ],
)
def test_step_shares_what_the_job_has(job, command, is_terminal, words):
    assert step(job, command, "/bin/zsh", is_terminal=is_terminal) == words


@pytest.mark.parametrize(
    "job", ["", "0", "-1", "c1", "12.", "12.-x", "12.c[1-2]", "12.c1,c2", "12 13", "12.0;id", "12\n"]
)
def test_what_is_no_job_is_refused(job, capsys):
    assert main(["shell", "--", job]) == 2
    assert "is no job; write 12, or 12.c2 for node c2" in capsys.readouterr().err


def test_environment_of_another_job_is_left_behind():
    given = {"HOME": "/home/a", "SLURM_JOB_ID": "7", "SLURM_NNODES": "2", "SBATCH_EXPORT": "NONE", "SLURM_CONF": "/s"}
    assert environment(given) == {"HOME": "/home/a", "SLURM_CONF": "/s"}


def test_srun_takes_the_place_of_the_command(tmp_path):
    """Its status is the command's, and files that the step makes have the user's own umask."""
    (tmp_path / "srun").write_text('#!/bin/sh\numask; echo "$*"; exit 7\n')
    (tmp_path / "srun").chmod(0o755)
    program = "import os, sys; os.umask(0o027); from isthmus.cli.main import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", program, "shell", "12", "--", "id"]
    variables = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(command, env=variables, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert done.returncode == 7
    assert done.stdout.split("\n")[:2] == ["0027", f"--jobid=12 {' '.join(ALWAYS)} -- id"]


def test_host_without_slurm_says_so(monkeypatch, capsys):
    monkeypatch.setenv("PATH", "/nonexistent")
    assert main(["shell", "12"]) == 1
    assert "srun is not installed here; log in to a login host" in capsys.readouterr().err
