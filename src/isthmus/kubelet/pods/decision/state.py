"""The observed state of one pod at one moment: the only input of `decide`.

Only the worker makes such states, from what it observes: the API's object, Slurm's job, the supervisor's report, the
images, what the pod names, and what the kubelet itself has done so far.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from isthmus.kubelet.gangs import groups
from isthmus.kubelet.pods.decision.actions import Peer, Work
from isthmus.model.pod_inputs import ImageState, Object, PodSettings
from isthmus.model.pod_job import SlurmJob
from isthmus.podproto.plan import Plan

FINAL = ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True)
class Pauses:
    """How long a worker waits, seconds.

    Attributes:
        retry: the first and longest pause before what failed is tried again.
        refused: the same after Slurm refused a job: an admin may have to act.
        connect: for the supervisor of a pod that must stop to reconnect, before its job is cancelled.
        margin: beyond the grace period, for the job to end.
        pull: for images, before the pod says that it pulls them.
        gang: for the nodes of all jobs that were submitted together.
        refresh: the longest delay until changed ConfigMaps, Secrets and tokens reach a running pod.
    """

    retry: tuple[float, float] = (1.0, 20.0)
    refused: tuple[float, float] = (10.0, 300.0)
    connect: float = 5.0
    margin: float = 15.0
    pull: float = 1.0
    gang: float = 15.0
    refresh: float = 30.0


@dataclass(frozen=True, slots=True)
class Prepared:
    """All that is needed to submit a pod and to send its plan.

    Attributes:
        plan: None while a claim gets its volume only when the job has a node.
        volumes: of the pod's claims that are bound.
        states: name of a container -> where its image stands.
    """

    plan: Plan | None
    volumes: tuple[Mapping[str, Any], ...]
    states: Mapping[str, ImageState]


@dataclass(frozen=True, slots=True)
class Held:
    """A pod that could not be prepared or submitted, and is tried again.

    Attributes:
        until_s: when, by `PodState.now_s`.
        status: to show meanwhile; None leaves what is shown.
    """

    until_s: float
    status: Object | None = None


@dataclass(frozen=True, slots=True)
class Link:
    """A supervisor that is connected.

    Attributes:
        peer: the connection.
        job: the Slurm job it runs in.
        node: where that is.
        has_plan: it knows what to run.
        is_attached: it is known to be the pod's.
        is_greeted: it has the cluster's Services, or the wait for them timed out.
    """

    peer: Peer
    job: str
    node: str
    has_plan: bool = False
    is_attached: bool = False
    is_greeted: bool = False


@dataclass(frozen=True, slots=True)
class Stop:
    """How far the end of a job has been brought.

    Attributes:
        cancel_at_s: when Slurm is to end it.
        notified: the supervisor that was asked to stop, and the whole grace period it was given.
        cancelled_s: when Slurm was asked last to end it.
    """

    cancel_at_s: float
    notified: tuple[Peer, int] | None = None
    cancelled_s: float | None = None


@dataclass(frozen=True, slots=True)
class PodState:
    """What is known of a pod.

    Attributes:
        pod: as the API has it, or as it was accepted when the API has it no more.
        settings: of the cluster.
        now: with a time zone.
        now_s: seconds that never go back.
        is_gone: the API has it no more.
        is_adopted: a job that the pod may have from before was looked for.
        number: its job.
        job: what Slurm last said of that; None before its first word.
        others: jobs of the pod that live beside it.
        is_watched: the worker is subscribed to the job.
        is_finished: the job has ended, and what it left was read.
        is_removed: nothing is left of the pod.
        has_turn: the pods that start together with it may be submitted.
        is_together: each of them has its nodes.
        is_withdrawn: one of them got none: it gives back its job, and waits again.
        problems: why the pod can never run here.
        held: it waits to be tried again.
        prepared: what was found of all that it names.
        images: name of a container -> where its image stands.
        report: the supervisor's last.
        link: the supervisor, if it is there.
        stop: how far its end has been brought; None while it may run.
        published: the status that was written last.
        refused: ephemeral containers that cannot be.
        done: work that has come to its end, and is still wanted.
        pauses: how long to wait.
    """

    pod: dict[str, Any]
    settings: PodSettings
    now: datetime
    now_s: float
    is_gone: bool = False
    is_adopted: bool = False
    number: str | None = None
    job: SlurmJob | None = None
    others: tuple[str, ...] = ()
    is_watched: bool = False
    is_finished: bool = False
    is_removed: bool = False
    has_turn: bool = False
    is_together: bool = False
    is_withdrawn: bool = False
    problems: tuple[str, ...] = ()
    held: Held | None = None
    prepared: Prepared | None = None
    images: Mapping[str, ImageState] = field(default_factory=dict)
    report: dict[str, Any] | None = None
    link: Link | None = None
    stop: Stop | None = None
    published: Object | None = None
    refused: frozenset[str] = frozenset()
    done: frozenset[Work] = frozenset()
    pauses: Pauses = field(default=Pauses())

    @property
    def is_deleted(self) -> bool:
        """Whether the pod must stop."""
        return self.is_gone or bool(self.pod["metadata"].get("deletionTimestamp"))

    @property
    def is_in_gang(self) -> bool:
        """Whether other pods start together with it."""
        return groups.of(self.pod) is not None

    @property
    def has_ended(self) -> bool:
        """Whether its job has ended."""
        return self.job is not None and self.job.state.ended
