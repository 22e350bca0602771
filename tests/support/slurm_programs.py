"""Slurm's commands as programs of a folder: a job is a file, and what is not known here fails.

`write(folder)` makes bin/{sbatch,squeue,scancel,sinfo,sacct,sacctmgr}; jobs lie in folder/jobs/<number>.json.
"""

from __future__ import annotations

import json
import os
import sys
import time
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


def _sbatch(folder: Path, words: list[str]) -> None:
    assert words[0] == "--parsable"
    assert not [name for name in os.environ if name.startswith(("SLURM_JOB", "SBATCH_", "SPANK_"))]
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
    for path in folder.glob("[0-9]*.json"):
        if text := path.read_text():
            job = json.loads(text)
            print(f"{job['id']}|{job['state']}|c1|{int(time.time())}|N/A|None|{job['comment']}")


def _scancel(folder: Path, words: list[str]) -> None:
    path = folder / f"{words[-1]}.json"
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
