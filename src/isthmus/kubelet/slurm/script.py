"""The text of a pod's batch script; all that varies is quoted."""

from __future__ import annotations

import shlex

from isthmus.model.pod_job import Job


def text(job: Job) -> str:
    """Return the script: a few variables, then the supervisor in its place, so that Slurm's signals reach it."""
    exports = [f"export {name}={shlex.quote(value)}" for name, value in job.environment]
    # -I: neither the pod's folder nor the user's variables say what Python loads.
    command = ["exec", job.python, "-I", "-m", "isthmus.supervisor", job.folder]
    # What lies in the pod's folder is the user's alone; containers have the umask that they expect (processes).
    return "\n".join(["#!/bin/sh", "umask 077", *exports, shlex.join(command), ""])
