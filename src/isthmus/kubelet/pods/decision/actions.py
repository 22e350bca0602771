"""Actions and work of a pod worker: `decide` chooses them, `Executor` and `Background` run them.

Actions run immediately and in order. Work is concurrent and may take long: it is started when first desired and
cancelled when no longer desired. Work that has finished is not restarted while it is still desired.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

from isthmus.podproto.plan import Plan

# Identifies a supervisor's connection; `decide` only compares it.
Peer = Hashable


@dataclass(frozen=True, slots=True)
class Adopt:
    """Look for a job that was submitted before a crash."""


@dataclass(frozen=True, slots=True)
class Retry:
    """Retry after a backoff."""


@dataclass(frozen=True, slots=True)
class Submit:
    """Submit the pod's job."""


@dataclass(frozen=True, slots=True)
class Watch:
    """Subscribe to changes of the job."""


@dataclass(frozen=True, slots=True)
class Cancel:
    """Cancel a job of the pod.

    Attributes:
        number: its job id.
    """

    number: str


@dataclass(frozen=True, slots=True)
class Reject:
    """Disconnect a supervisor of another job than the pod's.

    Attributes:
        peer: the supervisor.
    """

    peer: Peer


@dataclass(frozen=True, slots=True)
class Attach:
    """Accept a supervisor as the pod's.

    Attributes:
        peer: the supervisor.
    """

    peer: Peer


@dataclass(frozen=True, slots=True)
class SendPlan:
    """Send the plan to the supervisor.

    Attributes:
        peer: the supervisor.
        plan: of the pod's current version.
    """

    peer: Peer
    plan: Plan


@dataclass(frozen=True, slots=True)
class RefuseContainer:
    """Refuse an ephemeral container.

    Attributes:
        name: the container's.
        problems: the reasons.
    """

    name: str
    problems: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class BeginStop:
    """Start the termination of the pod."""


@dataclass(frozen=True, slots=True)
class SendStop:
    """Ask the supervisor to stop its containers.

    Attributes:
        peer: the supervisor.
        left_s: the rest of the grace period.
        whole_s: the whole grace period.
    """

    peer: Peer
    left_s: int
    whole_s: int


@dataclass(frozen=True, slots=True)
class Finish:
    """Read the last report of an ended job, and delete its key."""


@dataclass(frozen=True, slots=True)
class GiveBack:
    """Forget a job that ended before its containers started; another one is submitted."""


@dataclass(frozen=True, slots=True)
class Publish:
    """Write the pod's status.

    Attributes:
        status: v1.PodStatus.
    """

    status: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Remove:
    """Remove the pod's files, then its object."""


# Addressed to the connection that was observed; another may have replaced it meanwhile.
OfSupervisor = Reject | Attach | SendPlan | SendStop
Action = (
    OfSupervisor
    | Adopt
    | Retry
    | Submit
    | Watch
    | Cancel
    | RefuseContainer
    | BeginStop
    | Finish
    | GiveBack
    | Publish
    | Remove
)


@dataclass(frozen=True, slots=True)
class Prepare:
    """Resolve the pod's references: images, objects, claims.

    Attributes:
        node: where the job runs; None before it is submitted.
    """

    node: str | None = None


@dataclass(frozen=True, slots=True)
class Turn:
    """Wait until the gang may be submitted."""


@dataclass(frozen=True, slots=True)
class Together:
    """Wait until each job of the gang has its nodes."""


@dataclass(frozen=True, slots=True)
class Greet:
    """Wait until the supervisor has the cluster's Services.

    Attributes:
        peer: the supervisor.
    """

    peer: Peer


@dataclass(frozen=True, slots=True)
class Join:
    """Send an ephemeral container to the supervisor once its image is pulled.

    Attributes:
        peer: the supervisor.
        name: the container's.
    """

    peer: Peer
    name: str


@dataclass(frozen=True, slots=True)
class Replace:
    """Send a container's new image to the supervisor once it is pulled.

    Attributes:
        peer: the supervisor.
        name: the container's.
        image: of the current pod spec.
    """

    peer: Peer
    name: str
    image: str


Work = Prepare | Turn | Together | Greet | Join | Replace


@dataclass(frozen=True, slots=True)
class Decision:
    """The result of a decision.

    Attributes:
        actions: to run, in order.
        work: desired concurrent work; any other is cancelled.
        look_in_s: when to decide again without an event.
    """

    actions: tuple[Action, ...] = ()
    work: frozenset[Work] = frozenset()
    look_in_s: float = 60.0
