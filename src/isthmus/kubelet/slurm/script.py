"""A pod's batch script; every variable part is quoted."""

from __future__ import annotations

import shlex

from isthmus.model.pod_job import Job


def text(job: Job) -> str:
    """Return the script: a few variables, then exec of the supervisor, so that it gets Slurm's signals."""
    exports = [f"export {name}={shlex.quote(value)}" for name, value in job.environment]
    # -I: neither the pod's folder nor the user's environment affects Python's imports.
    command = ["exec", job.python, "-I", "-m", "isthmus.supervisor", job.folder]
    # The pod's folder is private to the user; containers get their usual umask (processes).
    return "\n".join(["#!/bin/sh", "umask 077", *exports, shlex.join(command), ""])
