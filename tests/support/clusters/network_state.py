"""What pod networks leave on nodes and in etcd: everything is compared with what was there before any job."""

from __future__ import annotations

import re
from dataclasses import dataclass

from isthmus.model.network import Job, Lease, User
from isthmus.network.state.codec import Value, decode
from isthmus.network.state.keys import Keys
from tests.support.clusters.cluster import Cluster, Node
from tests.support.wait import wait

# Interfaces, routes, namespaces, the plugin's records, files for DNS, and each rule with its sets.
ON_A_NODE = """
ip -oneline link | awk '{print "link " $2}'
ip -4 route | sed 's/^/route /'
find /run/netns /run/isthmus/spank /run/isthmus/dns -mindepth 1 -printf 'file %p\\n'
for family in inet bridge; do nft --stateless list table $family isthmus | sed "s/^/$family /"; done
"""
# What accounts have used up of their bounds: the kernel counts all senders, system users among them, and forgets.
COUNTED = re.compile(r"(inet|bridge)\s+(elements = { )?\S+ (limit rate over|ct count over) ")
# Two answers of Slurm that lack a job lie between its end and its addresses' return.
FREED_S = 180


@dataclass(frozen=True)
class Baseline:
    """A cluster at rest: what its nodes and etcd had before."""

    cluster: Cluster
    nodes: dict[str, frozenset[str]]

    @classmethod
    def of(cls, cluster: Cluster) -> Baseline:
        """Look at a cluster without pods."""
        wait(lambda: in_etcd(cluster), lambda left: not left, timeout_s=FREED_S)
        return cls(cluster, {name: on_node(node) for name, node in cluster.nodes.items()})

    def left(self) -> list[str]:
        """Return what is there now and was not before."""
        on_nodes = [
            f"{name}: {line}"
            for name, node in self.cluster.nodes.items()
            for line in sorted(on_node(node) - self.nodes[name])
        ]
        return on_nodes + in_etcd(self.cluster)

    def wait(self) -> None:
        """Wait until nothing is left."""
        wait(self.left, lambda left: not left, timeout_s=FREED_S, interval_s=1)


def on_node(node: Node) -> frozenset[str]:
    """Return a line for each thing of a node's that pod networks make."""
    return frozenset(line.strip() for line in node.output(ON_A_NODE).splitlines() if not COUNTED.match(line))


def in_etcd(cluster: Cluster) -> list[str]:
    """Return the jobs that etcd has, and users' legs on nodes without a lease."""
    values = _stored(cluster.part("etcd")[0])
    leases = {(value.uid, value.node) for value in values if isinstance(value, Lease)}
    jobs = [f"etcd: job {value.id} of {value.uid} has {value.addresses}" for value in values if isinstance(value, Job)]
    users = [value for value in values if isinstance(value, User)]
    return jobs + [
        f"etcd: {user.name} has a leg on {node}"
        for user in users
        for node in user.legs
        if (user.uid, node) not in leases
    ]


def _stored(member: Node) -> list[Value]:
    lines = member.output("isthmus-etcdctl get --prefix /isthmus/").splitlines()
    pairs = [(key, text) for key, text in zip(lines[::2], lines[1::2], strict=True) if "/network/" in key]
    return [decode(Keys(key.split("/")[2]), key, text) for key, text in pairs]
