"""Reconciles this node's pods of the routed network, and its routes to other nodes, with etcd's state.

A pass looks at what there is, takes away what is not wanted, makes what is missing, and writes to etcd the address of
each pod that etcd does not know. A job is wanted as long as etcd has it and it was not released here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv4Network
from threading import Lock
from typing import Protocol

from isthmus.clients.etcd.store import EtcdError
from isthmus.clients.netlink.networks import NetlinkError
from isthmus.clients.netlink.routed import Found
from isthmus.model.network import Attachment, Driver, State
from isthmus.model.networks.routed import Plan
from isthmus.model.node_network import SharedPod, shared_prefix
from isthmus.network.drivers.state import PlanError, jobs_here
from isthmus.network.node.attempts import Attempts
from isthmus.network.state.keys import StoredError
from isthmus.network.state.store import StoreError

# Subject of errors about the ways to other nodes.
ROUTES = "routes"


class Kernel(Protocol):
    """The node's kernel, for this network."""

    def observe(self) -> Found:
        """Return what exists."""

    def add(self, pod: SharedPod, mtu: int) -> None:
        """Make a pod."""

    def remove(self, job: int) -> None:
        """Remove a pod."""

    def route(
        self, had: Mapping[IPv4Network, IPv4Address], want: Mapping[IPv4Network, IPv4Address], by: IPv4Address
    ) -> None:
        """Send packets for other nodes' pods to these nodes."""


class FullError(OSError):
    """The node's subnet has no address left."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a pass left.

    Attributes:
        pods: whole ones, by job id.
        errors: name of a namespace, `routes` or `state` -> why it is not as wanted.
    """

    pods: Mapping[int, SharedPod] = field(default_factory=dict)
    errors: Mapping[str, str] = field(default_factory=dict)


class RoutedConverger:
    """Carries out what is wanted of the routed network on this node.

    Args:
        node: this node's name.
        plan: which node has which addresses.
        kernel: see Kernel.
        publish: writes a pod's address to etcd.
    """

    def __init__(self, node: str, plan: Plan, kernel: Kernel, publish: Callable[[Attachment], object]) -> None:
        self._node, self._plan = node, plan
        self._kernel, self._publish = kernel, publish
        self._lock = Lock()
        self._given = 1
        # What an earlier daemon made lives on; rules and names that come before the first pass count on it.
        self.last = Outcome(kernel.observe().pods)

    def run(self, read: Callable[[], State]) -> Outcome:
        """Make the node as the state wants it.

        Args:
            read: gives the newest state; asked once the pass has begun.
        """
        with self._lock:
            attempts = Attempts(NetlinkError, OSError, EtcdError, StoreError, StoredError)
            try:
                state = read()
                desired = jobs_here(state, self._node, Driver.ROUTED)
            except PlanError as error:
                self.last = Outcome(self.last.pods, {"state": str(error)})
                return self.last
            found = self._kernel.observe()
            attempts.make(ROUTES, self._route, state, found)
            pods = {job: pod for job, pod in found.pods.items() if desired.get(job) == pod.uid}
            for job in sorted((found.pods.keys() | found.broken) - pods.keys()):
                attempts.make(_name(job), self._kernel.remove, job)
            for job in sorted(desired.keys() - pods.keys()):
                if _name(job) not in attempts.errors:
                    attempts.make(_name(job), self._add, job, desired[job], state, pods)
            self._publish_all(pods, state, attempts)
            self.last = Outcome(pods, attempts.errors)
            return self.last

    def _route(self, state: State, found: Found) -> None:
        own = state.nodes[self._node].address
        if self._plan.subnet(own) is None:
            raise OSError(
                f"{own} is not in the segment {self._plan.segment} that all nodes share; run playbooks/network.yml"
            )
        others = [node.address for name, node in state.nodes.items() if name != self._node]
        wanted = {subnet: address for address in others if (subnet := self._plan.subnet(address))}
        self._kernel.route(found.routes, wanted, own)

    def _add(self, job: int, uid: int, state: State, pods: dict[int, SharedPod]) -> None:
        own = state.nodes[self._node].address
        subnet, gateway = self._plan.subnet(own), self._plan.gateway(own)
        if subnet is None or gateway is None:
            raise OSError(f"{own} is not in the segment {self._plan.segment} that all nodes share")
        taken = {pod.address for pod in pods.values()}
        pod = SharedPod(Driver.ROUTED, job, uid, self._free(subnet, taken), gateway)
        self._kernel.add(pod, min(node.mtu for node in state.nodes.values()))
        pods[job] = pod

    def _free(self, subnet: IPv4Network, taken: set[IPv4Address]) -> IPv4Address:
        """Return the next free address after the one given last: one that was given back rests for long."""
        places = subnet.num_addresses - 3
        for step in range(1, places + 1):
            place = 2 + (self._given - 2 + step) % places
            if subnet[place] not in taken:
                self._given = place
                return subnet[place]
        raise FullError(
            f"the node's subnet {subnet} has no address left for a pod; use another driver, or another node"
        )

    def _publish_all(self, pods: Mapping[int, SharedPod], state: State, attempts: Attempts) -> None:
        for job, pod in pods.items():
            attachment = Attachment(job, self._node, pod.address)
            if state.attachments.get((job, self._node)) != attachment:
                attempts.make(_name(job), self._publish, attachment)


def _name(job: int) -> str:
    return f"{shared_prefix(Driver.ROUTED)}{job}"
