"""`isthmus up`: one job if there is none, then patience; every step tells what is waited for.

A second call finds the first one's job, also when both run at once on two hosts: looking and submitting are done under
a lock. What is asked for holds for the job that is submitted; a job that is there stays as it is.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from isthmus.clients.kube.apiserver import ApiError
from isthmus.clients.process import ProcessError
from isthmus.clients.slurm import own_jobs as slurm_jobs
from isthmus.controlplane import job
from isthmus.controlplane.commands import wishes
from isthmus.controlplane.commands.place import Place, api, control_planes, jobs, read_json
from isthmus.controlplane.data import on_disk
from isthmus.controlplane.errors import ControlPlaneError
from isthmus.controlplane.layout import RESERVATION
from isthmus.controlplane.network import NetworkError
from isthmus.support import locks

# slurmctld is asked this often, files and API server more often.
SLURM_EVERY_S = 2.0
_PAUSE_S = 0.25
# From "it is ready" there to an answer here: routes of a new lease, caches of a shared home.
REACH_S = 30.0
_LOG_LINES = 12
_OTHER_OPTIONS = "choose others with --partition, --account, --qos, --time or --memory; `isthmus doctor` looks closer"
# squeue(1), JOB REASON CODES: Slurm takes such a job, and no wait helps.
_NEVER = {
    *("PartitionTimeLimit", "PartitionNodeLimit", "BadConstraints", "AssocMaxWallDurationPerJobLimit"),
    *("QOSMaxWallDurationPerJobLimit", "QOSMaxCpuPerJobLimit", "QOSMaxMemoryPerJob", "AssocMaxMemPerJob"),
}

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Up:
    """A cluster that answers.

    Attributes:
        schema: changes when a field changes its meaning.
        job: Slurm's id.
        server: the API server's URL.
        kubeconfig: the user's file.
        created: whether this call submitted the job.
        data: where they lie, and what that means; empty for the home.
        took_s: from the call to the answer.
        warnings: what does not work all the same, with remedies.
    """

    schema: int
    job: str
    server: str
    kubeconfig: str
    created: bool
    took_s: float
    warnings: tuple[str, ...]
    data: str = ""


def up(place: Place, changes: Mapping[str, Any], tell: Tell, timeout_s: float) -> Up:
    """Bring the user's cluster up, or find it up.

    Args:
        place: of the user.
        changes: fields of Wishes that were given now.
        tell: hears what is waited for.
        timeout_s: when to stop waiting; the job stays.

    Raises:
        ControlPlaneError: Slurm or the network refuses, the job ended, or time is over.
    """
    began_s = time.monotonic()
    _join(place)
    with _alone(place):
        mine = control_planes(jobs())
        found = [each for each in mine if each.state != "COMPLETING"]
        # One whose epilog still runs has the address, and perhaps the lock.
        job_id = found[0].id if found else _submit(place, changes, after=mine[0].id if mine else "")
    warnings = ["the control plane runs already: new options hold from the next start"] if found and changes else []
    server = _wait(place, job_id, tell, began_s + timeout_s)
    kept = on_disk.read(place.home.cluster, job_id)
    warnings += _kubelet_problems(place) + (kept.warnings if kept else [])
    took_s = round(time.monotonic() - began_s, 1)
    return Up(
        1, job_id, server, str(place.home.kubeconfig), not found, took_s, tuple(warnings), kept.words if kept else ""
    )


def _join(place: Place) -> None:
    if place.network is None:
        return
    try:
        place.network.reserve(RESERVATION)
        place.network.join()
    except NetworkError as error:
        raise ControlPlaneError(str(error)) from error


@contextmanager
def _alone(place: Place) -> Iterator[None]:
    place.home.cluster.logs.mkdir(mode=0o700, parents=True, exist_ok=True)
    place.home.folder.chmod(0o700)
    descriptor = os.open(place.home.folder / "up.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        # Without locks two calls at once may submit two jobs; the second of them is refused by `ownership`.
        locks.take(descriptor, wait=True)
        yield
    finally:
        os.close(descriptor)


def _submit(place: Place, changes: Mapping[str, Any], after: str) -> str:
    files = place.home.cluster
    asked = wishes.changed(wishes.read(files), changes)
    wanted = job.submission(place.settings, asked, files, place.python, after=after)
    try:
        submitted = slurm_jobs.submit(wanted.options, wanted.script, job.environment(place.settings))
    except ProcessError as error:
        said = error.stderr.strip() or str(error)
        raise ControlPlaneError(f"Slurm refuses the control plane's job: {said}; {_OTHER_OPTIONS}") from error
    # Kept only once Slurm took them: a refused partition is not asked for again.
    wishes.keep(place.home.cluster, changes)
    return submitted


def _wait(place: Place, job_id: str, tell: Tell, deadline_s: float) -> str:
    """Return the server once it answers here."""
    asked_s, ready_s = -SLURM_EVERY_S, None
    while True:
        now_s = time.monotonic()
        state = read_json(place.home.cluster.state)
        if state is not None and state.get("job") == job_id:
            ready_s = ready_s or now_s
            server = str(state["server"])
            if problem := _silence(place, server):
                tell(f"ready at {server}; waiting to reach it from here")
                if now_s - ready_s > REACH_S:
                    raise ControlPlaneError(f"{problem}; `isthmus doctor` tells whether the network is the reason")
            else:
                return server
        elif now_s - asked_s >= SLURM_EVERY_S:
            asked_s = now_s
            tell(_progress(place, job_id))
        if now_s > deadline_s:
            raise ControlPlaneError(
                f"not ready yet: {_progress(place, job_id)}; job {job_id} stays: go on waiting with `isthmus up`"
            )
        time.sleep(_PAUSE_S)


def _silence(place: Place, server: str) -> str:
    try:
        api(place.home, server).text("/readyz")
    except ApiError as error:
        return str(error)
    return ""


def _progress(place: Place, job_id: str) -> str:
    found = next((each for each in jobs() if each.id == job_id), None)
    if found is None:
        raise ControlPlaneError(f"job {job_id} ended before the cluster was ready:\n{_last_words(place)}")
    if found.state != "RUNNING":
        if found.reason in _NEVER:
            raise ControlPlaneError(
                f"job {job_id} can never start: {found.reason}; `isthmus down` ends it, then {_OTHER_OPTIONS}"
            )
        return f"job {job_id} waits for Slurm: {found.reason}"
    told = read_json(place.home.cluster.programs) or {}
    # Of this job only once it has written it; before, of the one that ended.
    states = [f"{name} {each['state']}" for name, each in told.get("programs", {}).items() if each["state"] != "ended"]
    return f"job {job_id} starts on {found.node}: {', '.join(states) or 'keys and files'}"


def _last_words(place: Place) -> str:
    try:
        lines = (place.home.cluster.logs / "job.log").read_text(errors="replace").splitlines()
    except OSError as error:
        return f"{error}; `sacct` tells how it ended"
    return "\n".join(lines[-_LOG_LINES:])


def _kubelet_problems(place: Place) -> list[str]:
    told = (read_json(place.home.cluster.programs) or {}).get("programs", {}).get("kubelet", {})
    if told.get("state") != "backoff" and not told.get("restarts"):
        return []
    said = f": {told['said']}" if told.get("said") else ""
    return [f"the kubelet does not stay up, so pods do not start{said}; see `isthmus logs kubelet`"]
