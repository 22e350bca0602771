"""What jobs used, by Slurm's accounting: one sacct for all of them.

sacct writes names as users chose them, line breaks too, so its fields are delimited by a mark that nobody can know
before. Of a job's rows the first has its allocation, those of its steps their usage.
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Sequence
from dataclasses import replace

from isthmus.clients.process import ProcessError, run
from isthmus.clients.slurm import commands as slurm
from isthmus.clients.slurm.commands import SlurmError
from isthmus.model.slurm.usage import Used

# slurmdbd may have years of jobs to look through.
TIMEOUT_S = 120.0
# sacct(1); in the order in which `_row` reads them.
_FIELDS = ("JobIDRaw", "User", "Account", "JobName", "Extra", "ElapsedRaw", "CPUTimeRAW", "TotalCPU", "AllocTRES")
_TIME = re.compile(r"(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+(?:\.\d+)?)")
_MEMORY = re.compile(r"(\d+(?:\.\d+)?)([KMGTP]?)")
# Slurm writes memory in MiB where it writes no unit.
_MIB = {"K": 1 / 1024, "": 1, "M": 1, "G": 1024, "T": 1024**2, "P": 1024**3}


def jobs(since: str, until: str = "", users: Sequence[str] = (), *, everybody: bool = False) -> list[Used]:
    """Return what jobs used that ran in a period, each as a whole.

    Args:
        since: a time as sacct(1) takes it.
        until: likewise; empty for now.
        users: whose jobs; empty for the caller's own.
        everybody: those of all users that the caller may see.

    Raises:
        SlurmError: no answer, or none that can be read; a time that Slurm does not understand.
    """
    mark = secrets.token_hex(8)
    words = ["--noheader", "--parsable", f"--delimiter={mark}", f"--format={','.join(_FIELDS)}", f"--starttime={since}"]
    words += [f"--endtime={until}"] if until else []
    words += ["--allusers"] if everybody else [f"--user={','.join(users) or os.getuid()}"]
    try:
        without = slurm.options_among(os.environ)
        output = run(["sacct", *words], timeout_s=TIMEOUT_S, without=without).stdout
    except ProcessError as error:
        raise SlurmError(f"Slurm's accounting did not say what was used: {error.stderr.strip() or error}") from error
    return _read(output, mark)


def _read(output: str, mark: str) -> list[Used]:
    *parts, last = output.split(mark)
    width = len(_FIELDS)
    if len(parts) % width or last.strip():
        raise SlurmError(f"sacct's answer is no list of jobs: {output[:200]!r}")
    found: dict[str, Used] = {}
    for begin in range(0, len(parts), width):
        first, *row = parts[begin : begin + width]
        job, _, step = first.lstrip("\n").partition(".")
        if not step:
            found[job] = _row(job, row)
        elif job in found:
            found[job] = replace(found[job], used_s=found[job].used_s + _seconds(row[6]))
    return list(found.values())


def _row(job: str, row: Sequence[str]) -> Used:
    user, account, name, extra, elapsed, cpus, _, had = row
    if not (job.isdecimal() and elapsed.isdecimal() and cpus.isdecimal()):
        raise SlurmError(f"sacct's answer is no list of jobs: {[job, *row]!r}")
    tres = dict(each.partition("=")[::2] for each in had.split(","))
    gpus = tres.get("gres/gpu", "0")
    return Used(
        job,
        user,
        account,
        name,
        extra,
        int(elapsed),
        int(cpus),
        0.0,
        _mib(tres.get("mem", "0")),
        int(gpus) if gpus.isdecimal() else 0,
    )


def _seconds(text: str) -> float:
    """Read a time as sacct writes it: [days-][hours:]minutes:seconds; 0 for none."""
    found = _TIME.fullmatch(text)
    if not found:
        return 0.0
    days, hours, minutes, seconds = (float(part or 0) for part in found.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds


def _mib(text: str) -> float:
    found = _MEMORY.fullmatch(text)
    return float(found[1]) * _MIB[found[2]] if found else 0.0
