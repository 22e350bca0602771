"""Runs a launch as a batch job of the user's.

The job's last act is a file on the shared home: to look for it costs slurmctld nothing, and disturbs no run. Slurm is
asked only then until the job has gone, and now and then in between, for a job may end without a last act.
"""

from __future__ import annotations

import time
from pathlib import Path

from isthmus.bench import scripts
from isthmus.bench.launches import Launch
from isthmus.bench.output import OutputError
from isthmus.bench.scripts import Site
from isthmus.clients.process import ProcessError
from isthmus.clients.slurm import own_jobs
from isthmus.clients.slurm.commands import SlurmError

_LOOK_S = 0.02
_ASK_S = 5.0
_LEAVES_S = 0.1
_GRACE_S = 120


class Slurm:
    """The site's, as the user has it."""

    def __init__(self, site: Site, folder: Path) -> None:
        self._site, self._folder = site, folder

    def run(self, launch: Launch, name: str) -> tuple[str, float, float]:
        """Run a launch; return what its ranks wrote, and when it was submitted and had ended, seconds since 1970.

        Raises:
            OutputError: Slurm refused it, or it did not end in time.
        """
        output, ended = self._folder / f"{name}.out", self._folder / f"{name}.end"
        for path in (output, ended):
            path.unlink(missing_ok=True)
        options, script = (
            scripts.options(launch, self._site, str(output)),
            scripts.script(launch, self._site, str(ended)),
        )
        began = time.time()
        try:
            job = own_jobs.submit(options, script)
        except ProcessError as error:
            raise OutputError(f"sbatch refused it: {error}") from error
        try:
            self._await(job, ended, launch.minutes * 60 + _GRACE_S)
            over = time.time()
        except BaseException:
            own_jobs.cancel([job])
            raise
        text = output.read_text(encoding="utf-8", errors="replace") if output.exists() else ""
        output.unlink(missing_ok=True)
        ended.unlink(missing_ok=True)
        return text, began, over

    def _await(self, job: str, ended: Path, limit_s: int) -> None:
        ends_s = time.monotonic() + limit_s
        ask_s = time.monotonic() + _ASK_S
        while not ended.exists():
            if time.monotonic() > ask_s:
                if not _is_there(job):
                    return
                ask_s = time.monotonic() + _ASK_S
            if time.monotonic() > ends_s:
                raise OutputError(f"job {job} has not ended after {limit_s} s; `squeue --me` may say why")
            time.sleep(_LOOK_S)
        while _is_there(job):
            if time.monotonic() > ends_s:
                raise OutputError(f"job {job} does not leave its nodes; see `squeue --me`")
            time.sleep(_LEAVES_S)


def _is_there(job: str) -> bool:
    try:
        return any(each.id == job for each in own_jobs.own_jobs())
    except SlurmError:
        # No answer says nothing.
        return True
