"""Slurm as the control plane's commands see it, strict: what was not submitted cannot be cancelled."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from isthmus.clients.process import ProcessError
from isthmus.clients.slurm.own_jobs import Job


@dataclass
class FakeSlurm:
    """Jobs of one user. `on_submit` and `on_cancel` are what the world does then."""

    jobs: dict[str, Job] = field(default_factory=dict)
    refusal: str = ""
    submitted: list[tuple[str, ...]] = field(default_factory=list)
    cancelled: list[tuple[str, bool]] = field(default_factory=list)
    on_submit: Callable[[Job], None] = lambda job: None
    ignores_order: bool = False
    made: int = 0

    def add(self, name: str, state: str = "RUNNING", comment: str = "") -> Job:
        """Make a job."""
        self.made += 1
        job = Job(str(self.made), state, "None", "c1", "1:00", "", name, comment)
        self.jobs[job.id] = job
        return job

    def submit(self, options: Any, script: str, environment: Any = None) -> str:
        """Take a job, or refuse it."""
        if self.refusal:
            raise ProcessError("sbatch", 1, "ended with status 1", "", self.refusal)
        self.submitted.append(tuple(options))
        (name,) = [option.split("=")[1] for option in options if option.startswith("--job-name=")]
        job = self.add(name)
        self.on_submit(job)
        return job.id

    def own_jobs(self) -> list[Job]:
        """List what has not ended."""
        return list(self.jobs.values())

    def cancel(self, jobs: Any, *, in_order: bool = False) -> None:
        """End jobs at once."""
        for job in jobs:
            self.cancelled.append((self.jobs[job].name, in_order))
            if not (in_order and self.ignores_order):
                del self.jobs[job]

    def set(self, job: Job, **changes: str) -> None:
        """Change a job."""
        self.jobs[job.id] = replace(self.jobs[job.id], **changes)

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Take the client's place."""
        for name in ("submit", "own_jobs", "cancel"):
            monkeypatch.setattr(f"isthmus.clients.slurm.own_jobs.{name}", getattr(self, name))
