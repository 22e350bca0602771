"""Slurm's commands as programs of a folder: a job is a file, and what is not known here fails.

`write(folder)` makes bin/{sbatch,squeue,scancel,sinfo,sacct,sacctmgr}; jobs lie in folder/jobs/<number>.json.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

NAMES = ("sbatch", "squeue", "scancel", "sinfo", "sacct", "sacctmgr")


def write(folder: Path) -> Path:
    """Make the programs; return the prefix to find them in."""
    (folder / "bin").mkdir(parents=True)
    (folder / "jobs").mkdir()
    for name in NAMES:
        path = folder / "bin" / name
        path.write_text(f'#!/bin/sh\nexec {sys.executable} {__file__} {folder}/jobs {name} "$@"\n')
        path.chmod(0o755)
    return folder


def jobs(folder: Path) -> list[dict[str, Any]]:
    """Return all jobs that there ever were."""
    return [json.loads(path.read_text()) for path in sorted((folder / "jobs").glob("[0-9]*.json"))]


def shown(words: Sequence[str], jobs: Iterable[Mapping[str, str]]) -> str:
    """Answer as squeue does, each job in the form that was asked for.

    Args:
        words: squeue's options.
        jobs: letter of a field -> its text; one that is asked for and missing here fails.
    """
    assert {"--all", "--noheader"} <= set(words)
    assert f"--user={os.getuid()}" in words
    (form,) = [word.partition("=")[2] for word in words if word.startswith("--format=")]
    return "".join(re.sub("%(.)", lambda found, job=job: job[found[1]], form) + "\n" for job in jobs)  # type: ignore[misc]


def _sbatch(folder: Path, words: list[str]) -> None:
    assert words[0] == "--parsable"
    assert not [name for name in os.environ if name.startswith(("SLURM_JOB", "SBATCH_", "SPANK_", "ISTHMUS_RES"))]
    time.sleep(0.05)
    options = dict(word.partition("=")[::2] for word in words[1:])
    number = 1
    while True:
        try:
            with (folder / f"{number}.json").open("x") as file:
                json.dump({"id": str(number), "state": "RUNNING", "comment": options["--comment"]}, file)
                break
        except FileExistsError:
            number += 1
    time.sleep(0.05)
    print(number)


def _squeue(folder: Path, words: list[str]) -> None:
    jobs = [json.loads(text) for path in folder.glob("[0-9]*.json") if (text := path.read_text())]
    always = {"N": "c1", "S": str(int(time.time())), "e": "N/A", "r": "None"}
    print(shown(words, [{**always, "A": job["id"], "T": job["state"], "k": job["comment"]} for job in jobs]), end="")


def _scancel(folder: Path, words: list[str]) -> None:
    for word in filter(str.isdecimal, words):
        path = folder / f"{word}.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), "state": "CANCELLED"}))


def _sinfo(folder: Path, words: list[str]) -> None:
    print("c1|main*|up|32|8192|(null)|(null)|idle")


def _none(folder: Path, words: list[str]) -> None:
    return


_KNOWN = {
    "sbatch": _sbatch,
    "squeue": _squeue,
    "scancel": _scancel,
    "sinfo": _sinfo,
    "sacct": _none,
    "sacctmgr": _none,
}

if __name__ == "__main__":
    _KNOWN[sys.argv[2]](Path(sys.argv[1]), sys.argv[3:])
