"""The steps from the observed to the desired state of a node, in an order in which each is safe.

What goes, goes first: an address or a route may be another's now. Pods go before the leg they are attached to, legs
come before their pods, and ways to other nodes are right before a pod begins to send. Live pods are served before new
ones. Each step may be taken again: a daemon that was killed between two begins with what it finds.

What makes an object what it is cannot be changed: it is removed and made again. A pod is not made again because its
leg was: processes would stay behind in a namespace without a way out; it is attached to the new leg instead.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network

from isthmus.model.node_network import Forward, Leg, NodePlan, Pod

Blocks = frozenset[IPv4Network]
Peers = frozenset[tuple[IPv4Address, IPv4Address]]


@dataclass(frozen=True, slots=True)
class RemoveBroken:
    """Remove an interface or namespace of ours that is half made."""

    name: str


@dataclass(frozen=True, slots=True)
class RemovePod:
    """Remove a pod's namespace and interfaces."""

    pod: Pod


@dataclass(frozen=True, slots=True)
class RemoveLeg:
    """Remove a bridge and its VXLAN device; pods that stay are attached to another leg later."""

    leg: Leg


@dataclass(frozen=True, slots=True)
class AddLeg:
    """Make a leg with all its forwards and routes."""

    leg: Leg


@dataclass(frozen=True, slots=True)
class ChangeLeg:
    """Change a leg that exists. What is removed goes before what is added: one MAC may have moved to another node.

    Attributes:
        leg: as it should be.
        forwards_added: forwarding entries it lacks.
        forwards_removed: entries it should not have.
        blocks_added: routes it lacks.
        blocks_removed: routes it should not have.
        mtu: whether the MTU is another.
        ipv6: whether it has no IPv6 and should, or the other way round, or another.
    """

    leg: Leg
    forwards_added: frozenset[Forward] = frozenset()
    forwards_removed: frozenset[Forward] = frozenset()
    blocks_added: Blocks = frozenset()
    blocks_removed: Blocks = frozenset()
    mtu: bool = False
    ipv6: bool = False


@dataclass(frozen=True, slots=True)
class AddPod:
    """Make a pod's namespace and interfaces; its leg is there."""

    pod: Pod


@dataclass(frozen=True, slots=True)
class ChangePod:
    """Change a pod that exists, without its processes noticing. What is removed goes before what is added.

    Attributes:
        pod: as it should be.
        peers_added: routes to the job's other nodes that it lacks.
        peers_removed: such routes that it should not have.
        blocks_added: on-link routes it lacks.
        blocks_removed: on-link routes it should not have.
        mtu: whether the MTU is another.
        gateway: whether the default route is another.
        attach: whether the host's end must be attached to the leg, which is a new one, or forgot its neighbours.
        ipv6: as of a leg.
    """

    pod: Pod
    peers_added: Peers = frozenset()
    peers_removed: Peers = frozenset()
    blocks_added: Blocks = frozenset()
    blocks_removed: Blocks = frozenset()
    mtu: bool = False
    gateway: bool = False
    attach: bool = False
    ipv6: bool = False


Step = RemoveBroken | RemovePod | RemoveLeg | AddLeg | ChangeLeg | AddPod | ChangePod


def difference(found: NodePlan, wanted: NodePlan) -> tuple[Step, ...]:
    """Return the steps that make `wanted` of `found`, none when they are equal."""
    kept_legs = {vni for vni, leg in found.legs.items() if _is_same_leg(leg, wanted.legs.get(vni))}
    kept_pods = {job for job, pod in found.pods.items() if _is_same_pod(pod, wanted.pods.get(job))}
    return (
        *(RemoveBroken(name) for name in sorted(found.broken)),
        *(RemovePod(found.pods[job]) for job in sorted(found.pods.keys() - kept_pods)),
        *(RemoveLeg(found.legs[vni]) for vni in sorted(found.legs.keys() - kept_legs)),
        *(AddLeg(wanted.legs[vni]) for vni in sorted(wanted.legs.keys() - kept_legs)),
        *_changed_legs(found, wanted, kept_legs),
        *_changed_pods(found, wanted, kept_pods, kept_legs),
        *(AddPod(wanted.pods[job]) for job in sorted(wanted.pods.keys() - kept_pods)),
    )


def _is_same_leg(found: Leg, wanted: Leg | None) -> bool:
    return found is wanted or (
        wanted is not None
        and (found.vni, found.uid, found.address, found.underlay)
        == (wanted.vni, wanted.uid, wanted.address, wanted.underlay)
    )


def _is_same_pod(found: Pod, wanted: Pod | None) -> bool:
    """Return whether a pod is to stay; one without a bridge (VNI 0) is: its leg went, and its processes are there."""
    return found is wanted or (
        wanted is not None
        and (found.job, found.uid, found.address) == (wanted.job, wanted.uid, wanted.address)
        and found.vni in (0, wanted.vni)
    )


def _changed_legs(found: NodePlan, wanted: NodePlan, kept: set[int]) -> Iterator[ChangeLeg]:
    for vni in sorted(kept):
        had, leg = found.legs[vni], wanted.legs[vni]
        if had is leg:
            continue
        step = ChangeLeg(
            leg,
            leg.forwards - had.forwards,
            had.forwards - leg.forwards,
            frozenset(leg.blocks).difference(had.blocks),
            frozenset(had.blocks).difference(leg.blocks),
            leg.mtu != had.mtu,
            leg.ipv6 != had.ipv6,
        )
        if step != ChangeLeg(leg):
            yield step


def _changed_pods(found: NodePlan, wanted: NodePlan, kept: set[int], kept_legs: set[int]) -> Iterator[ChangePod]:
    for job in sorted(kept):
        had, pod = found.pods[job], wanted.pods[job]
        leg_is_new = pod.vni not in kept_legs or found.legs[pod.vni].ipv6 != wanted.legs[pod.vni].ipv6
        if had is pod and not leg_is_new:
            continue
        step = ChangePod(
            pod,
            pod.peers - had.peers,
            had.peers - pod.peers,
            frozenset(pod.blocks).difference(had.blocks),
            frozenset(had.blocks).difference(pod.blocks),
            pod.mtu != had.mtu,
            pod.gateway != had.gateway,
            pod.vni != had.vni or leg_is_new,
            pod.ipv6 != had.ipv6,
        )
        if step != ChangePod(pod):
            yield step
