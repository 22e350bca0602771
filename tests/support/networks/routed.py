"""Nodes of the routed network in namespaces, with the filter in force, and a machine of their segment that is none."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from ipaddress import IPv4Address, IPv4Network

from isthmus.clients import nftables
from isthmus.clients.netlink.routed import Found, RoutedKernel
from isthmus.model.network import Attachment, Driver, Job, Node, State, User
from isthmus.model.networks.routed import Plan
from isthmus.model.node_network import NodePlan, shared_prefix
from isthmus.network.drivers.routed.converge import Outcome, RoutedConverger
from isthmus.network.drivers.routed.rules import Routed
from isthmus.network.node import rules
from tests.support.networks.namespaces import TCP, UDP, Namespace, Nodes
from tests.support.networks.pod_networks import ALICE, ALLOWED, BOB, DENIED, METADATA, OPEN, SERVED, SLURM, sysctl
from tests.support.networks.pod_networks import SETTINGS as PRIVATE

MEMBERS = ("n1", "n2")
PLAN = Plan(IPv4Network("10.160.0.0/16"), IPv4Network("192.0.2.0/24"))
SETTINGS = replace(PRIVATE, pods=IPv4Network("10.64.0.0/11"), shared=(Routed(PLAN),))
ETCD = 2379


class World:
    """A pod of alice's and one of bob's on each member, and what etcd would know of them."""

    def __init__(self, stack: ExitStack) -> None:
        self.stack, self.nodes = stack, Nodes.of(stack, *MEMBERS)
        self.pods: dict[tuple[str, int], Namespace] = {}
        outside = self.nodes.add("outside")
        for address in (OPEN, DENIED, METADATA):
            outside.ip(f"addr add {address}/32 dev lo")
        users = {uid: User(uid, f"u{uid}", uid) for uid in (ALICE, BOB)}
        jobs = {job: Job(job, uid, "run", Driver.ROUTED, MEMBERS, ()) for job, uid in ((1, ALICE), (2, BOB))}
        nodes = {name: Node(name, self.nodes.address(name)) for name in MEMBERS}
        self.state = State(nodes, users, jobs)
        self.kernels: dict[str, RoutedKernel] = {}
        self.converging: dict[str, RoutedConverger] = {}
        for name in MEMBERS:
            self._begin(name)
        for name in MEMBERS:
            self.follow(name)
        for (_, job), pod in self.pods.items():
            for kind in (TCP, UDP):
                stack.enter_context(pod.serve("", SERVED, kind, name=f"pod{job}".encode()))
        for name in (*MEMBERS, "outside"):
            for port in (SERVED, SLURM, ALLOWED, ETCD):
                stack.enter_context(self.nodes.places[name].serve("", port))

    def _begin(self, name: str) -> None:
        place = self.nodes.places[name]
        sysctl(place, "ipv4/ip_forward", "1")
        place.ip(f"route add default via {self.nodes.address('outside')}")
        kernel = place.do(RoutedKernel, PLAN.range)
        self.stack.callback(kernel.close)
        self.kernels[name], self.converging[name] = kernel, RoutedConverger(name, PLAN, kernel, self._publish)
        self.run(name)
        for job in self.state.jobs:
            self.pods[name, job] = self.nodes.pod(name, job, shared_prefix(Driver.ROUTED))

    def _publish(self, each: Attachment) -> None:
        self.state = replace(self.state, attachments={**self.state.attachments, (each.job, each.node): each})

    def run(self, name: str) -> Outcome:
        """Make a pass."""
        outcome: Outcome = self.nodes.places[name].do(self.converging[name].run, lambda: self.state)
        assert outcome.errors == {}
        return outcome

    def follow(self, name: str) -> None:
        """Put the filter in force."""
        plan = NodePlan(shared=self.run(name).pods)
        wanted = rules.elements(plan, self.state, name, SETTINGS)
        self.nodes.places[name].do(nftables.apply, rules.base(SETTINGS) + rules.change({}, wanted))

    def observe(self, name: str) -> Found:
        """Return what a node has."""
        found: Found = self.nodes.places[name].do(self.kernels[name].observe)
        return found

    def address(self, name: str, job: int) -> IPv4Address:
        """Return a pod's address."""
        return self.state.attachments[job, name].address

    def gateway(self, name: str) -> IPv4Address:
        """Return the address of a node that its pods see."""
        found = PLAN.gateway(self.nodes.address(name))
        assert found
        return found
