"""What a worker can do for its pod. `decide` chooses, `Worker` carries out.

An action is done at once, in its turn. Work takes its time beside all else: it is begun when it is wanted first, and
given up when it is wanted no more. Work that has ended is not begun again while it is still wanted.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

from isthmus.podproto.plan import Plan

# A connection to a supervisor: it is compared, and handed back to whoever acts.
Peer = Hashable


@dataclass(frozen=True, slots=True)
class Adopt:
    """Look for a job that the pod has already, from before a crash."""


@dataclass(frozen=True, slots=True)
class Retry:
    """Try again what was held."""


@dataclass(frozen=True, slots=True)
class Submit:
    """Submit the pod's job."""


@dataclass(frozen=True, slots=True)
class Watch:
    """Be told of every change of the job."""


@dataclass(frozen=True, slots=True)
class Cancel:
    """Have Slurm end a job of the pod.

    Attributes:
        number: which.
    """

    number: str


@dataclass(frozen=True, slots=True)
class Reject:
    """Send a supervisor away that is none of the pod's job.

    Attributes:
        peer: the supervisor.
    """

    peer: Peer


@dataclass(frozen=True, slots=True)
class Attach:
    """Take a supervisor as the pod's.

    Attributes:
        peer: the supervisor.
    """

    peer: Peer


@dataclass(frozen=True, slots=True)
class SendPlan:
    """Tell the supervisor what to run.

    Attributes:
        peer: the supervisor.
        plan: of the pod, as it is now.
    """

    peer: Peer
    plan: Plan


@dataclass(frozen=True, slots=True)
class RefuseContainer:
    """Say why an ephemeral container cannot be.

    Attributes:
        name: the container's.
        problems: what is wrong.
    """

    name: str
    problems: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class BeginStop:
    """Begin to bring the job to its end."""


@dataclass(frozen=True, slots=True)
class TellStop:
    """Tell the supervisor to stop.

    Attributes:
        peer: the supervisor.
        left_s: what is left of the grace period.
        whole_s: of which this is the rest.
    """

    peer: Peer
    left_s: int
    whole_s: int


@dataclass(frozen=True, slots=True)
class Finish:
    """Read what an ended job left, and take its key away."""


@dataclass(frozen=True, slots=True)
class GiveBack:
    """Forget a job that ended before its containers began; the pod gets another one."""


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


# What is said to a supervisor: to the one that it was decided of, though another may have come meanwhile.
OfSupervisor = Reject | Attach | SendPlan | TellStop
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
    """Find all that the pod names: images, objects, claims.

    Attributes:
        node: where the job runs; None before it is submitted.
    """

    node: str | None = None


@dataclass(frozen=True, slots=True)
class Turn:
    """Wait until the pods that start together may be submitted."""


@dataclass(frozen=True, slots=True)
class Together:
    """Wait until each of them has its nodes."""


@dataclass(frozen=True, slots=True)
class Greet:
    """Wait until a supervisor has been told the Services.

    Attributes:
        peer: the supervisor.
    """

    peer: Peer


@dataclass(frozen=True, slots=True)
class Join:
    """Tell the supervisor of an ephemeral container, as soon as its image is there.

    Attributes:
        peer: the supervisor.
        name: the container's.
    """

    peer: Peer
    name: str


@dataclass(frozen=True, slots=True)
class Replace:
    """Tell the supervisor of a container's other image, as soon as it is there.

    Attributes:
        peer: the supervisor.
        name: the container's.
        image: what the pod says now.
    """

    peer: Peer
    name: str
    image: str


Work = Prepare | Turn | Together | Greet | Join | Replace


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do now.

    Attributes:
        actions: in this order.
        work: all that is to go on meanwhile; other work is given up.
        look_in_s: when to look again though nothing has happened.
    """

    actions: tuple[Action, ...] = ()
    work: frozenset[Work] = frozenset()
    look_in_s: float = 60.0
