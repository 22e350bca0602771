"""`isthmus up`: one job if there is none, then a wait that reports each step.

A second call finds the first one's job, also when both run at once on two hosts: looking and submitting are done under
a lock. What is asked for holds for the job that is submitted; a job that is there stays as it is.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from isthmus.clients.kube.errors import KubeError
from isthmus.clients.process import ProcessError
from isthmus.clients.slurm import own_jobs as slurm_jobs
from isthmus.controlplane import job
from isthmus.controlplane.commands import user_options
from isthmus.controlplane.commands.context import Context, api, control_planes, jobs, read_json
from isthmus.controlplane.commands.user_options import UserOptions
from isthmus.controlplane.data import data_report
from isthmus.controlplane.errors import ControlPlaneError
from isthmus.controlplane.layout import RESERVATION
from isthmus.controlplane.network import NetworkError
from isthmus.controlplane.pki import kubeconfig
from isthmus.controlplane.versions import outlook, record
from isthmus.controlplane.versions.plan import NEWEST
from isthmus.support import locks

# slurmctld is asked this often, files and API server more often.
SLURM_EVERY_S = 2.0
_LOG_LINES = 12
_OTHER_OPTIONS = "choose others with --partition, --account, --qos, --time or --memory; `isthmus doctor` looks closer"
# squeue(1), JOB REASON CODES: Slurm takes such a job, and no wait helps.
_NEVER = {
    *("PartitionTimeLimit", "PartitionNodeLimit", "BadConstraints", "AssocMaxWallDurationPerJobLimit"),
    *("QOSMaxWallDurationPerJobLimit", "QOSMaxCpuPerJobLimit", "QOSMaxMemoryPerJob", "AssocMaxMemPerJob"),
}

Progress = Callable[[str], None]


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
        kubernetes: the version that runs.
        is_found: whether kubectl finds it without KUBECONFIG.
    """

    schema: int
    job: str
    server: str
    kubeconfig: str
    created: bool
    took_s: float
    warnings: tuple[str, ...]
    data: str = ""
    kubernetes: str = ""
    is_found: bool = False


def up(context: Context, changes: Mapping[str, Any], progress: Progress, timeout_s: float) -> Up:
    """Bring the user's cluster up, or find it up.

    Args:
        context: of the user.
        changes: fields of UserOptions that were given now.
        progress: hears what is waited for.
        timeout_s: when to stop waiting; the job stays.

    Raises:
        ControlPlaneError: Slurm or the network refuses, the job ended, or time is over.
    """
    began_s = time.monotonic()
    changes = _again(context, changes)
    _refuse(context, changes)
    _join(context)
    with _alone(context):
        mine = control_planes(jobs())
        found = [each for each in mine if each.state != "COMPLETING"]
        # One whose epilog still runs has the address, and perhaps the lock.
        job_id = found[0].id if found else _submit(context, changes, after=mine[0].id if mine else "")
        warnings = _later(context, changes) if found else []
    server, version = _wait(context, job_id, progress, began_s + timeout_s)
    kept = data_report.read(context.home.cluster, job_id)
    warnings += _kubelet_problems(context) + (kept.warnings if kept else [])
    warnings += outlook.look(context.home.cluster, context.settings.choices, _asked(context)).warnings
    took_s = round(time.monotonic() - began_s, 1)
    words = kept.words if kept else ""
    own = context.home.kubeconfig
    is_found = kubeconfig.offer(context.home.usual_kubeconfig, own)
    return Up(1, job_id, server, str(own), not found, took_s, tuple(warnings), words, version, is_found)


def _asked(context: Context, changes: Mapping[str, Any] = MappingProxyType({})) -> UserOptions:
    return user_options.changed(user_options.read(context.home.cluster), changes)


def _again(context: Context, changes: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return changes with all that a version which is asked for means: one that failed is to be tried again."""
    if "kubernetes" not in changes:
        return changes
    known = record.of_data(context.home.cluster)
    again = known.failure.time if known and known.failure else ""
    version = "" if changes["kubernetes"] == NEWEST else changes["kubernetes"]
    return {**changes, "kubernetes": version, "kubernetes_again": again}


def _refuse(context: Context, changes: Mapping[str, Any]) -> None:
    """Refuse a start that cannot be made; one that runs may run on."""
    files = context.home.cluster
    found = outlook.look(files, context.settings.choices, _asked(context, changes))
    if found.refusal and ("kubernetes" in changes or read_json(files.state) is None):
        raise ControlPlaneError(found.refusal)


def _later(context: Context, changes: Mapping[str, Any]) -> list[str]:
    """Return what new options mean for a control plane that runs; a version of Kubernetes is kept for the next one."""
    versions = _versions(changes)
    words = []
    if changes.keys() - versions.keys():
        words.append("the control plane runs already: new options hold from the next start")
    if versions:
        user_options.keep(context.home.cluster, versions)
        words.append("the control plane runs already: another version of Kubernetes is for its next start")
    return words


def _versions(changes: Mapping[str, Any]) -> Mapping[str, Any]:
    return {name: value for name, value in changes.items() if name.startswith("kubernetes")}


def _join(context: Context) -> None:
    if context.network is None:
        return
    try:
        context.network.reserve(RESERVATION)
        context.network.join()
    except NetworkError as error:
        raise ControlPlaneError(str(error)) from error


@contextmanager
def _alone(context: Context) -> Iterator[None]:
    context.home.cluster.logs.mkdir(mode=0o700, parents=True, exist_ok=True)
    context.home.folder.chmod(0o700)
    descriptor = os.open(context.home.folder / "up.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        # Without locks two calls at once may submit two jobs; the second of them is refused by `ownership`.
        locks.take(descriptor, wait=True)
        yield
    finally:
        os.close(descriptor)


def _submit(context: Context, changes: Mapping[str, Any], after: str) -> str:
    files = context.home.cluster
    asked = user_options.changed(user_options.read(files), changes)
    wanted = job.submission(context.settings, asked, files, context.python, after=after)
    if versions := _versions(changes):
        # Before the job may read it: who asks to stay must not be moved.
        user_options.keep(files, versions)
    try:
        submitted = slurm_jobs.submit(wanted.options, wanted.script, job.environment(context.settings))
    except ProcessError as error:
        said = error.stderr.strip() or str(error)
        raise ControlPlaneError(f"Slurm refuses the control plane's job: {said}; {_OTHER_OPTIONS}") from error
    # Kept only once Slurm took them: a refused partition is not asked for again.
    user_options.keep(context.home.cluster, changes)
    return submitted


def _wait(context: Context, job_id: str, progress: Progress, deadline_s: float) -> tuple[str, str]:
    """Return the server once it answers here, and its version of Kubernetes."""
    asked_s, ready_s = -SLURM_EVERY_S, None
    while True:
        now_s = time.monotonic()
        state = read_json(context.home.cluster.state)
        if state is not None and state.get("job") == job_id:
            ready_s = ready_s or now_s
            server = str(state["server"])
            if problem := _silence(context, server):
                progress(f"ready at {server}; waiting to reach it from here")
                if now_s - ready_s > context.timing.reach_s:
                    raise ControlPlaneError(f"{problem}; `isthmus doctor` shows whether the network is the reason")
            else:
                return server, str(state.get("kubernetes", ""))
        elif now_s - asked_s >= SLURM_EVERY_S:
            asked_s = now_s
            progress(_progress(context, job_id))
        if now_s > deadline_s:
            raise ControlPlaneError(
                f"not ready yet: {_progress(context, job_id)}; job {job_id} stays: go on waiting with `isthmus up`"
            )
        time.sleep(context.timing.up_s)


def _silence(context: Context, server: str) -> str:
    try:
        api(context.home, server).text("/readyz")
    except KubeError as error:
        return str(error)
    return ""


def _progress(context: Context, job_id: str) -> str:
    found = next((each for each in jobs() if each.id == job_id), None)
    if found is None:
        raise ControlPlaneError(f"job {job_id} ended before the cluster was ready:\n{_last_words(context)}")
    if found.state != "RUNNING":
        if found.reason in _NEVER:
            raise ControlPlaneError(
                f"job {job_id} can never start: {found.reason}; `isthmus down` ends it, then {_OTHER_OPTIONS}"
            )
        return f"job {job_id} waits for Slurm: {found.reason}"
    document = read_json(context.home.cluster.programs) or {}
    # Of this job only once it has written it; before, of the one that ended.
    states = [
        f"{name} {each['state']}" for name, each in document.get("programs", {}).items() if each["state"] != "ended"
    ]
    return f"job {job_id} starts on {found.node}: {_moving(context)}{', '.join(states) or 'keys and files'}"


def _moving(context: Context) -> str:
    known = record.of_data(context.home.cluster)
    return f"Kubernetes {known.versions.kubernetes} to {known.newest.kubernetes}, " if known and known.move else ""


def _last_words(context: Context) -> str:
    try:
        lines = context.home.cluster.job_log.read_text(errors="replace").splitlines()
    except OSError as error:
        return f"{error}; `sacct` shows how it ended"
    return "\n".join(lines[-_LOG_LINES:])


def _kubelet_problems(context: Context) -> list[str]:
    document = (read_json(context.home.cluster.programs) or {}).get("programs", {}).get("kubelet", {})
    if document.get("state") != "backoff" and not document.get("restarts"):
        return []
    said = f": {document['said']}" if document.get("said") else ""
    return [f"the kubelet does not stay up, so pods do not start{said}; see `isthmus logs kubelet`"]
