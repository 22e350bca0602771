"""The routed network: names on a node, and the addresses that follow from a node's own."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network

# Of a pod's host end; Debian's interface names have 15 characters, a job id at most 10.
VETH = "ir"
# A node's subnet has at least this many bits: a gateway and some pods.
SUBNET_BITS = 4


@dataclass(frozen=True, slots=True)
class Plan:
    """Which node has which addresses: its place in the segment is its subnet's in the range.

    Attributes:
        range: all addresses of pods.
        segment: the network that all nodes have their own addresses in.
    """

    range: IPv4Network
    segment: IPv4Network

    @property
    def prefix(self) -> int:
        """Prefix length of a node's subnet; above 32 less SUBNET_BITS the range is too small."""
        return self.range.prefixlen + self.segment.max_prefixlen - self.segment.prefixlen

    def subnet(self, node: IPv4Address) -> IPv4Network | None:
        """Return the subnet of a node, None for one outside of the segment."""
        if node not in self.segment or self.prefix > self.range.max_prefixlen - SUBNET_BITS:
            return None
        place = int(node) - int(self.segment.network_address)
        start = int(self.range.network_address) + (place << (self.range.max_prefixlen - self.prefix))
        return IPv4Network((start, self.prefix))

    def gateway(self, node: IPv4Address) -> IPv4Address | None:
        """Return the address of a node that its pods see."""
        subnet = self.subnet(node)
        return subnet[1] if subnet else None
