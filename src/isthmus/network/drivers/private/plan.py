"""The desired kernel state of private networks on one node: a pure function of etcd's state and the node's name.

A user has a leg here while a pod of theirs is here or they hold a lease here, on a gateway while they have a pod
anywhere; a node with none of these wants nothing at all.
The leg's VXLAN device knows the way to each of the user's pods and legs on other nodes, and floods to the nodes that
have one. Nothing else goes out: an address that nobody has is nobody's packet.

Pods live while etcd says so. A state that does not fit this node is therefore refused and never read as "nothing is
wanted", which would cut off live jobs: the daemon then leaves the kernel as it is and says why.

A user with 4,000 nodes has 12,000 forwarding entries on each, and their next small job changes a few of them, so a
Planner keeps what it worked out for each job and leg and only does what is new. Its memory makes it faster, never
different: `desired` is the same without one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from ipaddress import IPv4Address, IPv6Network

from isthmus.model.network import Driver, Job, Node, State, User
from isthmus.model.networks.ipv6 import MTU_MIN
from isthmus.model.node_network import FLOOD, VXLAN_OVERHEAD, Forward, Leg, NodePlan, Pod, mac
from isthmus.network.drivers.state import check
from isthmus.support.recall import Memory

Forwards = frozenset[Forward]


def desired(state: State, node: str, ipv6: IPv6Network | None = None) -> NodePlan:
    """Return what a node should have.

    Args:
        state: etcd's.
        node: which node.
        ipv6: what IPv6 addresses begin with; None where pods have none.

    Raises:
        PlanError: the node is not among the members, or two users share a VNI.
    """
    return Planner(node, ipv6).plan(state)


class Planner:
    """Plans of one node, of one state after another; states share what did not change.

    Args:
        node: which node.
        ipv6: what IPv6 addresses begin with; None where pods have none.

    Attributes:
        unconnected: jobs on the node that the last plan could not hold, as etcd does not know their user's leg here:
            it was damaged.
        narrow: why pods have no IPv6 although they should; empty otherwise.
    """

    def __init__(self, node: str, ipv6: IPv6Network | None = None) -> None:
        self._node = node
        self._ipv6 = ipv6
        self._beginning = ipv6
        self.narrow = ""
        self._nodes: Mapping[str, Node] = {}
        self._memory = Memory()
        self._jobs: dict[int, tuple[Job, bool]] = {}
        self.unconnected: tuple[int, ...] = ()

    def plan(self, state: State) -> NodePlan:
        """Return what the node should have.

        Raises:
            PlanError: the node is not among the members, or two users share a VNI.
        """
        check(state, self._node)
        if self._nodes != state.nodes:
            # Rare, and everything depends on where nodes are.
            self._nodes, self._memory = state.nodes, Memory()
        mtu = min(node.mtu for node in self._nodes.values()) - VXLAN_OVERHEAD
        self._look_at(mtu)
        here = self._here(state)
        uids = {job.uid for job in here} | {uid for uid, node in state.leases if node == self._node}
        if self._nodes[self._node].gateway:
            uids |= {job.uid for job in state.jobs.values() if job.driver == Driver.PRIVATE}
        users = [state.users[uid] for uid in sorted(uids & state.users.keys()) if self._node in state.users[uid].legs]
        same, known = self._memory.same, {user.uid: user for user in users}
        legs = {
            user.vni: same(("whole", user.vni), self._leg(user, jobs, mtu)) for user, jobs in _by_user(users, state)
        }
        pods = {job.id: same(job.id, self._pod(known[job.uid], job, mtu)) for job in here if job.uid in known}
        self.unconnected = tuple(sorted(job.id for job in here if job.id not in pods))
        self._memory.turn()
        return NodePlan(legs, pods)

    def _look_at(self, mtu: int) -> None:
        """Let pods do without IPv6 where packets may be too short for it: the kernel takes no address then."""
        self._beginning = self._ipv6 if mtu >= MTU_MIN else None
        if self._ipv6 is None or self._beginning:
            self.narrow = ""
            return
        name = min(self._nodes.values(), key=lambda node: node.mtu).name
        self.narrow = f"pods have {mtu} bytes, as {name} carries no more, and IPv6 needs {MTU_MIN}; raise its MTU"

    def _here(self, state: State) -> list[Job]:
        known = self._jobs
        self._jobs = {
            number: had if (had := known.get(number)) is not None and had[0] is job else (job, self._node in job.nodes)
            for number, job in state.jobs.items()
        }
        return [job for job, is_here in self._jobs.values() if is_here and job.driver == Driver.PRIVATE]

    def _leg(self, user: User, jobs: Iterable[Job], mtu: int) -> Leg:
        recall = self._memory.recall
        ways = recall(("legs", user.uid), user.legs, self._ways_to_legs, user)
        pods = [recall(("pods", job.id), job, self._ways_to_pods, job) for job in jobs]
        underlay = self._nodes[self._node].address
        address, forwards = user.legs[self._node], ways.union(*pods)
        return Leg(user.vni, user.uid, address, user.blocks, underlay, mtu, forwards, self._beginning)

    def _ways_to_legs(self, user: User) -> Forwards:
        return frozenset().union(
            *(
                self._memory.recall(("leg", user.uid, node), address, self._ways_to_leg, (node, address))
                for node, address in user.legs.items()
                if self._is_peer(node)
            )
        )

    def _ways_to_leg(self, leg: tuple[str, IPv4Address]) -> Forwards:
        peer = self._nodes[leg[0]].address
        return frozenset({Forward(FLOOD, peer), Forward(mac(leg[1]), peer)})

    def _ways_to_pods(self, job: Job) -> Forwards:
        return frozenset(
            Forward(mac(address), self._nodes[node].address)
            for node, address in zip(job.nodes, job.addresses, strict=True)
            if self._is_peer(node)
        )

    def _pod(self, user: User, job: Job, mtu: int) -> Pod:
        peers = self._memory.recall(("peers", job.id), (job, user.legs), self._peers, (job, user))
        address = job.addresses[job.nodes.index(self._node)]
        leg = user.legs[self._node]
        return Pod(job.id, job.uid, user.vni, address, leg, user.blocks, mtu, peers, self._beginning)

    def _peers(self, pod: tuple[Job, User]) -> frozenset[tuple[IPv4Address, IPv4Address]]:
        job, user = pod
        return frozenset(
            (self._nodes[node].address, user.legs[node])
            for node in job.nodes
            if self._is_peer(node) and node in user.legs
        )

    def _is_peer(self, node: str) -> bool:
        """Return whether a node is another one, and a member: else nobody knows where it is."""
        return node != self._node and node in self._nodes


def _by_user(users: Iterable[User], state: State) -> list[tuple[User, list[Job]]]:
    found: dict[int, tuple[User, list[Job]]] = {user.uid: (user, []) for user in users}
    for job in state.jobs.values():
        if job.uid in found and job.driver == Driver.PRIVATE:
            found[job.uid][1].append(job)
    return list(found.values())
