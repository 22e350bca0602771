"""From a pod to its submitted job: admit, pull images, resolve references, translate, submit.

A job is submitted only if it can start. NotYetError carries the status to publish meanwhile; NeverError is final.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from isthmus.clients.kube.api import Object
from isthmus.clients.slurm.pod_jobs import RefusedError
from isthmus.kubelet.admit import pod as refusals
from isthmus.kubelet.admit import runtime_classes
from isthmus.kubelet.images.pulls import Pulls, Show
from isthmus.kubelet.pods.decision.state import Prepared
from isthmus.kubelet.pods.parts import Parts
from isthmus.kubelet.pods.unready import UnreadyError
from isthmus.kubelet.slurm import flags, script
from isthmus.kubelet.status import pod as status
from isthmus.kubelet.translate import pod as translate
from isthmus.model.pod_inputs import Image, ImageState
from isthmus.model.pod_job import Job
from isthmus.podproto.plan import Plan, to_json
from isthmus.podproto.reasons import Reason

_FULL = (errno.ENOSPC, errno.EDQUOT)

_log = logging.getLogger(__name__)


class NotYetError(Exception):
    """The pod cannot be submitted yet.

    Attributes:
        status: v1.PodStatus to publish.
        pauses: the first and the longest pause before the next try, seconds.
    """

    def __init__(self, shown: Object, message: str, pauses: tuple[float, float]) -> None:
        super().__init__(message)
        self.status, self.pauses = shown, pauses


class NeverError(Exception):
    """The pod can never run on this cluster."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


async def prepare(parts: Parts, pod: Object, slurm_node: str | None = None, show: Show | None = None) -> Prepared:
    """Resolve a pod's references and translate it.

    Args:
        parts: the kubelet's dependencies.
        pod: the pod.
        slurm_node: of its job; None before the job runs.
        show: publishes the pod's status during long image pulls.

    Raises:
        NotYetError: an image or a referenced object is missing.
        NeverError: it can never run here.
        KubeError: the API server did not answer.
    """
    since_s = time.monotonic()
    await _refuse(parts, pod)
    await _check_runtime(parts, pod)
    pod, images, states = await _find_images(parts, pod, show, since_s)
    try:
        later = await _claims(parts, pod, slurm_node)
    except UnreadyError as error:
        raise _unready(parts, pod, error, states) from error
    resolved = await parts.config.resolve(pod, images, since_s)
    volumes = tuple(resolved.volumes.values())
    await _refuse(parts, pod, volumes)
    if later:
        return Prepared(None, volumes, states)
    try:
        return Prepared(translate.plan(pod, resolved), volumes, states)
    except UnreadyError as error:
        raise _unready(parts, pod, error, states) from error


async def _refuse(parts: Parts, pod: Object, volumes: Sequence[Mapping[str, Any]] = ()) -> None:
    """Refuse a pod that can never run; a node or QOS that an administrator has just created is looked up first.

    Raises:
        NeverError: it can never run here.
    """
    if refusals.problems(pod, parts.settings, volumes):
        await parts.config.renew()
        if problems := refusals.problems(pod, parts.settings, volumes):
            raise NeverError(problems)


async def _check_runtime(parts: Parts, pod: Object) -> None:
    if not (name := pod["spec"].get("runtimeClassName")):
        return
    try:
        runtime_classes.check(name, await parts.config.runtime_class(name))
    except UnreadyError as error:
        raise _unready(parts, pod, error, {}) from error


async def slurm_job(parts: Parts, pod: Object, prepared: Prepared) -> Job:
    """Return the job of a pod.

    Raises:
        NeverError: an annotation of its namespace is invalid.
    """
    namespace = await parts.config.namespace(pod["metadata"]["namespace"])
    if namespace and (problems := flags.owner(namespace)):
        raise NeverError([f"namespace: {problem}" for problem in problems])
    return translate.job(pod, parts.settings, namespace, prepared.volumes)


async def submit(parts: Parts, pod: Object, prepared: Prepared) -> str:
    """Record the pod, submit its job, record the job; return its id.

    Raises:
        NeverError: an annotation of its namespace is invalid.
        NotYetError: Slurm refused, or the home is full.
        NoAnswerError: there may be a job.
    """
    folder = parts.store.folder(pod["metadata"]["uid"])
    job = await slurm_job(parts, pod, prepared)

    def keep() -> None:
        folder.accept(pod)
        folder.renew_credential(parts.authority)
        folder.set_address(parts.address.host, parts.address.port)

    try:
        await asyncio.to_thread(keep)
    except OSError as error:
        raise _held(pod, prepared, *_home(error), parts.pauses.refused) from error
    try:
        number = await parts.jobs.submit(job, script.text(job))
    except RefusedError as error:
        raise _held(pod, prepared, Reason.SUBMIT, f"Slurm refuses the job: {error}", parts.pauses.refused) from error
    try:
        await asyncio.to_thread(folder.set_job, number)
    except OSError as error:
        # The job's comment has the pod's UID, by which a restarted kubelet finds it.
        _log.warning("job %s of pod %s is not recorded: %s", number, folder.uid, error)
    return number


def _home(error: OSError) -> tuple[Reason, str]:
    """Return the reason and message of a pod that cannot be written to the home."""
    if error.errno in _FULL:
        advice = "remove what you do not need, such as old images in ~/.isthmus/images"
        return Reason.HOME_FULL, f"the home is full: {error}; {advice}"
    return Reason.HOME_UNAVAILABLE, f"the home cannot be written: {error}; the pod starts when it can"


def _held(pod: Object, prepared: Prepared, reason: Reason, message: str, pauses: tuple[float, float]) -> NotYetError:
    shown = status.pod_status(pod, None, None, prepared.states, datetime.now(UTC))
    return NotYetError(status.held(shown, reason, message), message, pauses)


async def _find_images(
    parts: Parts, pod: Object, show: Show | None, since_s: float
) -> tuple[Object, dict[str, Image], dict[str, ImageState]]:
    pulls = Pulls(parts, pod, await parts.config.pull_secrets(pod, since_s))
    try:
        if show:
            pod = await pulls.shown(show)
        images, states, waits = await pulls.answers()
    finally:
        pulls.end()
    if waits:
        shown = status.pod_status(pod, None, None, states, datetime.now(UTC))
        first = min(waits, key=lambda wait: wait.retry_s)
        raise NotYetError(shown, str(first), (first.retry_s, first.retry_s))
    return pod, images, states


async def _claims(parts: Parts, pod: Object, slurm_node: str | None) -> bool:
    """Provision the pod's unbound claims; return whether one is bound only when the job has a node.

    Raises:
        UnreadyError: a claim names a StorageClass that is missing.
    """
    space = pod["metadata"]["namespace"]
    later = False
    for claim in (await parts.config.claims(space, translate.wanted(pod).claims)).values():
        if claim["spec"].get("volumeName"):
            continue
        if name := await parts.claims.missing_class(claim):
            what = f'persistentvolumeclaim "{claim["metadata"]["name"]}" is not bound: StorageClass "{name}" is missing'
            raise UnreadyError(Reason.MOUNT, f"{what}; name one of `kubectl get storageclasses`")
        if not await parts.claims.is_placed_later(claim):
            await parts.claims.select(claim)
        elif slurm_node:
            await parts.claims.place(claim, slurm_node)
        else:
            later = True
    return later


def _unready(parts: Parts, pod: Object, error: UnreadyError, states: Mapping[str, ImageState]) -> NotYetError:
    shown = status.unready(pod, error, states, datetime.now(UTC))
    return NotYetError(shown, error.message, parts.pauses.retry)


def plan_json(plan: Plan, version: int) -> dict[str, Any]:
    """Return the message with a plan, in a version of the protocol."""
    return {"type": "plan", "plan": to_json(plan, version)}
