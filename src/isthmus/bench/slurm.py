"""Runs a launch as a batch job of the user.

A job's last act is to create a file on the shared home: polling that file costs slurmctld nothing and disturbs no run.
slurmctld itself is polled every few seconds, as a job that was killed leaves no file, and after the file appeared until
the job has left the queue.
"""

from __future__ import annotations

import time
from pathlib import Path

from isthmus.bench import scripts
from isthmus.bench.launches import Launch
from isthmus.bench.output import OutputError
from isthmus.bench.scripts import Site
from isthmus.bench.timing import Timing
from isthmus.clients.process import ProcessError
from isthmus.clients.slurm import own_jobs
from isthmus.clients.slurm.commands import SlurmError


class Slurm:
    """Submits launches with sbatch, one at a time."""

    def __init__(self, site: Site, folder: Path, timing: Timing | None = None) -> None:
        self._site, self._folder, self._timing = site, folder, timing or Timing()

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
            self._await(job, ended, self._timing.limit_s(launch))
            over = time.time()
        except BaseException:
            own_jobs.cancel([job])
            raise
        text = output.read_text(encoding="utf-8", errors="replace") if output.exists() else ""
        output.unlink(missing_ok=True)
        ended.unlink(missing_ok=True)
        return text, began, over

    def _await(self, job: str, ended: Path, limit_s: float) -> None:
        deadline = time.monotonic() + limit_s
        next_poll = time.monotonic() + self._timing.squeue_s
        while not ended.exists():
            if time.monotonic() > next_poll:
                if not _is_queued(job):
                    return
                next_poll = time.monotonic() + self._timing.squeue_s
            if time.monotonic() > deadline:
                raise OutputError(f"job {job} has not ended after {limit_s:g} s; see `squeue --me`")
            time.sleep(self._timing.file_s)
        while _is_queued(job):
            if time.monotonic() > deadline:
                raise OutputError(f"job {job} is still completing after {limit_s:g} s; see `squeue --me`")
            time.sleep(self._timing.leaves_s)


def _is_queued(job: str) -> bool:
    try:
        return any(each.id == job for each in own_jobs.own_jobs())
    except SlurmError:
        # A slurmctld that does not answer is no evidence that the job has ended.
        return True
