"""The jobs of many users and the nodes, in one query each: isthmus-jobsd's poll.

A row stays as squeue and sinfo wrote it, as its receiver parses it as their output (`pod_jobs.found`,
`slurm_offer.renewed`). Its fields are cut to what a pod's job needs.
"""

from __future__ import annotations

import os
import pwd
from collections.abc import Collection, Mapping
from pathlib import Path

from isthmus.clients.process import ProcessError, run
from isthmus.clients.slurm import commands as slurm
from isthmus.clients.slurm import offer as slurm_offer
from isthmus.clients.slurm import pod_jobs
from isthmus.clients.slurm.commands import SlurmError
from isthmus.model.job_feed import Row, Rows

TIMEOUT_S = 60.0
# More names than that are no shorter answer.
_NAMED = 200
# Of pod_jobs.FIELDS: id, state, nodes, start, end, reason, comment. A comment that is longer is no pod's UID.
_CUTS = (20, 40, 4096, 40, 40, 256, 64)
# sinfo(1), NODE STATE CODES: words that come and go with jobs, and make no difference for what a node offers.
_WORKING = frozenset({"allocated", "completing", "idle", "mixed"})
_STATE = -1
_NOBODY = "invalid user"
# sacctmgr(1), AdminLevel.
_SEES_ALL = ("Operator", "Administrator")


class AllJobs:
    """The jobs of some users, and the nodes.

    Args:
        prefix: where Slurm is installed.
    """

    def __init__(self, prefix: Path = Path("/usr")) -> None:
        self._prefix = prefix

    def queue(self, users: Collection[int]) -> Mapping[int, Rows]:
        """Return the jobs of users, by uid and id, with those that ended in the last minutes.

        Raises:
            SlurmError: no answer, or none that can be read.
        """
        form = slurm.Form(("%U", *pod_jobs.FIELDS))
        words = ["squeue", *form.words, "--states=all"]
        named = [f"--user={','.join(map(str, sorted(users)))}"] if len(users) <= _NAMED else []
        try:
            output = self._run(*words, *named)
        except ProcessError as error:
            # An account that is no more must not keep the others' jobs from them.
            if not (named and _NOBODY in error.stderr.lower()):
                raise SlurmError(f"slurmctld did not say which jobs there are: {error}") from error
            output = self._unnamed(words)
        found: dict[int, dict[str, Row]] = {uid: {} for uid in users}
        for user, *fields in form.rows(output):
            # Others than those that were asked for, and rows without a number, are nobody's here.
            if user.isdecimal() and int(user) in found and fields[0].isdecimal():
                found[int(user)][fields[0]] = tuple(text[:cut] for text, cut in zip(fields, _CUTS, strict=True))
        return found

    def _unnamed(self, words: list[str]) -> str:
        try:
            return self._run(*words)
        except ProcessError as error:
            raise SlurmError(f"slurmctld did not say which jobs there are: {error}") from error

    def _run(self, program: str, *words: str) -> str:
        argv = [str(self._prefix / "bin" / program), *words]
        without = slurm.options_among(os.environ)
        return run(argv, timeout_s=TIMEOUT_S, environment=pod_jobs.ENVIRONMENT, without=without).stdout

    def hidden(self) -> frozenset[str]:
        """Return what Slurm hides from this account of others, in the words of PrivateData (slurm.conf).

        Raises:
            SlurmError: no answer.
        """
        try:
            output = self._run("scontrol", "show", "config")
            private = next((line for line in output.splitlines() if line.startswith("PrivateData ")), "")
            hidden = frozenset(private.partition("=")[2].strip().split(",")) - {"none", "(null)", ""}
            if not hidden:
                return hidden
            name = f"name={pwd.getpwuid(os.geteuid()).pw_name}"
            level = self._run("sacctmgr", "--noheader", "--parsable2", "show", "user", name, "format=AdminLevel")
        except (ProcessError, KeyError) as error:
            raise SlurmError(f"Slurm did not say what it hides: {error}") from error
        # This account sees all jobs, and must pass each on to its owner alone.
        return hidden - {"jobs"} if level.strip() in _SEES_ALL else hidden

    def nodes(self) -> Rows:
        """Return the nodes of the partitions that everybody may see, by node and partition.

        Raises:
            SlurmError: no answer, or none that can be read.
        """
        rows = slurm_offer.node_rows(self._prefix)
        return {f"{row[0]} {row[1]}": (*row[:_STATE], _steady(row[_STATE])) for row in rows}


def _steady(state: str) -> str:
    return "idle" if state in _WORKING else state
