"""Reconciles the node's kernel, packet filter and DNS with etcd's state.

Two things are changed elsewhere: pods of shared networks, by their drivers (`network.drivers`), and the rules
for Services in a pod's own namespace (`network.services`).

One pass at a time, under a lock; a request that comes meanwhile waits and then mostly finds its work done: however
many want a new state, its pass is made once. A pass computes what should be, compares it with what the last pass left,
and carries out the difference; it looks at the kernel itself at the start, after any failure, and now and then, for
what others may have changed. The filter comes first: what it does not know of is refused, so nothing is open before its
rules are. A step that fails leaves the others alone; it is reported to requests for that job, and retried by the next
pass.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from ipaddress import IPv6Network
from threading import Lock
from typing import Protocol

from isthmus.clients.netlink.networks import Kernel, NetlinkError
from isthmus.model.network import State
from isthmus.model.node_network import NAMESPACE, NodePlan, SharedPod
from isthmus.network import metrics
from isthmus.network.drivers.private.plan import Planner
from isthmus.network.drivers.state import PlanError
from isthmus.network.node.attempts import Attempts
from isthmus.network.node.steps import (
    AddLeg,
    AddPod,
    ChangeLeg,
    ChangePod,
    RemoveBroken,
    RemoveLeg,
    RemovePod,
    Step,
    difference,
)

# How often the kernel is looked at although nothing failed.
LOOK_S = 60.0

_log = logging.getLogger(__name__)


class Filter(Protocol):
    """The node's packet filter."""

    def follow(self, desired: NodePlan, state: State) -> None:
        """Make the rules' sets as wanted; raises OSError's or its own kind of error."""


class Names(Protocol):
    """The node's DNS."""

    def follow(self, desired: NodePlan, state: State) -> None:
        """Write the DNS records of this node, and notify the server of changes."""


class Outside(Protocol):
    """What a gateway has on its other side."""

    def follow(self, desired: NodePlan, state: State) -> None:
        """Hold the outside addresses, or let go of them; raises OSError's or its own kind of error."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a pass left.

    Attributes:
        plan: what the node has now, as far as it is known.
        errors: subject (an interface's or namespace's name, `state`, `filter`, `names`, `outside`, `ipv6`) -> why it is
            not as wanted.
    """

    plan: NodePlan = field(default_factory=NodePlan)
    errors: Mapping[str, str] = field(default_factory=dict)


class Converger:
    """Carries out plans on this node.

    Args:
        node: this node's name.
        kernel: of the thread's network namespace.
        packet_filter: see Filter.
        names: see Names.
        shared: gives the pods of shared networks that exist; rules and names follow them.
        clock: seconds that never go back.
        outside: of a gateway.
        ipv6: what pods' IPv6 addresses begin with; None where they have none.
    """

    def __init__(
        self,
        node: str,
        kernel: Kernel,
        packet_filter: Filter,
        names: Names,
        clock: Callable[[], float] = time.monotonic,
        shared: Callable[[], Mapping[int, SharedPod]] = dict,
        outside: Outside | None = None,
        ipv6: IPv6Network | None = None,
    ) -> None:
        self._planner = Planner(node, ipv6)
        self._kernel = kernel
        self._filter = packet_filter
        self._names = names
        self._clock = clock
        self._shared = shared
        self._outside = outside
        self._lock = Lock()
        self._observed: NodePlan | None = None
        self._looked_s = 0.0
        self._lost: tuple[int, ...] = ()
        self._done: State | None = None
        self.last = Outcome()

    def run(self, read: Callable[[], State], *, again: bool = True) -> Outcome:
        """Make the node as the state wants it.

        Args:
            read: gives the newest state; asked once the pass has begun.
            again: look once more where the last pass was of this very state, and nothing failed.
        """
        with self._lock, metrics.CONVERGE_S.time():
            attempts = Attempts(NetlinkError, OSError)
            try:
                state = read()
                if not again and state is self._done:
                    return self.last
                self._done = None
                desired = replace(self._planner.plan(state), shared=self._shared())
            except PlanError as error:
                _log.error("nothing is changed: %s", error)
                self.last = Outcome(self.last.plan, {"state": str(error)})
                return self.last
            lost = self._unconnected()
            # Without its rules nothing new may be reached.
            if attempts.make("filter", self._filter.follow, desired, state):
                self._change(desired, attempts)
                if self._outside:
                    attempts.make("outside", self._outside.follow, desired, state)
            attempts.make("names", self._names.follow, desired, state)
            narrow = {"ipv6": self._planner.narrow} if self._planner.narrow else {}
            self.last = Outcome(desired, {**lost, **narrow, **attempts.errors})
            self._done = None if attempts.errors else state
            return self.last

    def _unconnected(self) -> dict[str, str]:
        """Log jobs of this node that no plan can hold, whenever the set changes."""
        lost = self._planner.unconnected
        why = "etcd has no leg of its user on this node; end the job, or restore etcd from a backup"
        if lost != self._lost:
            for job in lost:
                _log.error("job %d has no network here: %s", job, why)
        self._lost = lost
        return {f"{NAMESPACE}{job}": why for job in lost}

    def _change(self, desired: NodePlan, attempts: Attempts) -> None:
        observed = self._look()
        for step in difference(observed, desired):
            attempts.make(subject(step), self._carry_out, step, observed)
        self._observed = None if attempts.errors else replace(desired, broken=frozenset())

    def _carry_out(self, step: Step, observed: NodePlan) -> None:
        match step:
            case RemoveBroken(name):
                self._kernel.remove_broken(name)
            case RemovePod(pod):
                self._kernel.remove_pod(pod.job)
            case RemoveLeg(leg):
                self._kernel.remove_leg(leg.vni)
            case AddLeg(leg):
                self._kernel.add_leg(leg)
            case ChangeLeg(leg):
                self._kernel.change_leg(observed.legs[leg.vni], leg)
            case AddPod(pod):
                self._kernel.add_pod(pod)
            case ChangePod(pod, attach=attach):
                had = observed.pods[pod.job]
                # A leg made again has the number of the old one, and none of its ports.
                self._kernel.change_pod(replace(had, vni=0) if attach else had, pod)

    def _look(self) -> NodePlan:
        now = self._clock()
        if self._observed is None or now - self._looked_s >= LOOK_S:
            self._observed = self._kernel.observe()
            self._looked_s = now
        return self._observed


def subject(step: Step) -> str:
    """Return the name of what a step is about: an interface, or a pod's namespace."""
    match step:
        case RemoveBroken(name):
            return name
        case RemovePod(pod) | AddPod(pod) | ChangePod(pod):
            return pod.namespace
        case RemoveLeg(leg) | AddLeg(leg) | ChangeLeg(leg):
            return leg.name
