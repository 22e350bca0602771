"""IPv6 in private networks: what the packet filter has more where a site has a range for it; else IPv6 is dropped.

The questions are those of `rules`, and so are the answers, by addresses that go with the IPv4 ones. What differs:
- Nothing leads out. A pod has no route to anything but its user's network, and its packets are not handed on.
- Of hosts, pods reach their user's legs alone. DNS, Slurm and all else they reach by IPv4.
- Neighbour discovery is ICMPv6, so it is looked at where ARP is: a pod solicits, advertises and confirms with its own
  address and MAC (RFC 4861, 4.3 and 4.4). It sends nothing that routers send, and no reports of multicast groups:
  bridges forward all multicast, so nobody needs them.

A message of neighbour discovery is 24 bytes long, of which the last 16 are the target's address, and 8 more with a MAC:
kind and length of the option, and the MAC. nft of Debian 12 has no names for these fields.
"""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv6Network

from isthmus.model.networks.ipv6 import beside, block_beside
from isthmus.model.node_network import LEG, VETH, VXLAN, NodePlan, Pod, mac

Elements = dict[str, frozenset[str]]
SETS = {
    "owned_ip6": "type uid . ipv6_addr; flags interval",
    "legs_ip6": "type ifname . ipv6_addr",
    "networks_ip6": "type ifname . ipv6_addr; flags interval",
}
_ADDRESS, _OPTION = "@th,64,128", "@th,192,64"
# Of the table `bridge`.
BRIDGE_SETS = {
    "pods_ip6": "type ifname . ether_addr . ipv6_addr",
    "solicits_ip6": f"typeof iifname . {_OPTION}",
    "advertises_ip6": f"typeof iifname . {_ADDRESS} . {_OPTION}",
    "confirms_ip6": f"typeof iifname . {_ADDRESS}",
}
# Kind and length in units of eight bytes (RFC 4861, 4.6.1).
_SOURCE_MAC, _TARGET_MAC = "0101", "0201"
_NEIGHBOURS = "icmpv6 type { nd-neighbor-solicit, nd-neighbor-advert }"
# What the kernel says of its own accord when an interface gets an address.
_GROUPS = "icmpv6 type { mld-listener-query, mld-listener-report, mld-listener-done, mld2-listener-report }"
_ROUTERS = "icmpv6 type { nd-router-solicit, nd-router-advert, nd-redirect, router-renumbering }"
_FLAGS = "(fin | syn | rst | ack)"
_REFUSE = "reject with icmpv6 type admin-prohibited"
_OWN_UID = 'comment "a host process reaches pods of its own uid"'
_OWN_NETWORK = 'comment "by a leg to its own network alone"'
NO_WAY_OUT = "pods have no way out by IPv6"


def elements(plan: NodePlan) -> Elements:
    """Return what each set should hold on a node."""
    legs = [(leg, leg.ipv6) for leg in plan.legs.values() if leg.ipv6]
    pods = [(pod, pod.ipv6) for pod in plan.pods.values() if pod.ipv6]
    blocks = [(leg, block_beside(begin, block)) for leg, begin in legs for block in leg.blocks]
    return {
        "owned_ip6": frozenset(f"{leg.uid} . {block}" for leg, block in blocks),
        "legs_ip6": frozenset(f"{leg.name} . {beside(begin, leg.address)}" for leg, begin in legs),
        "networks_ip6": frozenset(f"{leg.name} . {block}" for leg, block in blocks),
        "pods_ip6": frozenset(f"{pod.veth} . {mac(pod.address)} . {beside(begin, pod.address)}" for pod, begin in pods),
        "solicits_ip6": frozenset(f"{pod.veth} . {_option(_SOURCE_MAC, pod)}" for pod, _ in pods),
        "advertises_ip6": frozenset(
            f"{pod.veth} . {int(beside(begin, pod.address)):#x} . {_option(_TARGET_MAC, pod)}" for pod, begin in pods
        ),
        "confirms_ip6": frozenset(f"{pod.veth} . {int(beside(begin, pod.address)):#x}" for pod, begin in pods),
    }


def chains(range: IPv6Network, trusted: Iterable[int]) -> dict[str, list[str]]:
    """Return the chains of their own, of the table `inet`.

    Args:
        range: all IPv6 addresses of private networks.
        trusted: uids that may talk to every pod.
    """
    return {
        "to_pods_ip6": [
            f"{_NEIGHBOURS} accept",
            f"{_GROUPS} drop",
            f'meta skuid {{ {", ".join(map(str, trusted))} }} accept comment "root, and network_admin_users"',
            *(
                f'oifname "{each}*" oifname . ip6 daddr != @networks_ip6 drop {_OWN_NETWORK}'
                for each in (LEG, VXLAN, VETH)
            ),
            'meta skuid . ip6 daddr @owned_ip6 accept comment "whose pods they are"',
            f"ip6 saddr {range} tcp flags & {_FLAGS} == (syn | ack) drop"
            ' comment "who listens on a leg is root or its owner"',
            f"tcp flags & {_FLAGS} == syn {_REFUSE} {_OWN_UID}",
            "meta l4proto tcp ct state established accept",
            "ct direction reply ct state established accept",
            "ct state related accept",
            f"{_REFUSE} {_OWN_UID}",
            "drop",
        ],
        "from_leg_ip6": [
            "ip6 saddr :: drop",
            "iifname . ip6 saddr != @networks_ip6 drop",
            f"{_NEIGHBOURS} accept",
            "ct state established,related accept",
            "iifname . ip6 daddr @legs_ip6 goto own_leg_ip6",
            'drop comment "of hosts, pods reach their own network\'s legs alone by IPv6"',
        ],
        "own_leg_ip6": [
            "icmpv6 type echo-request accept",
            "tcp dport 1024-65535 socket wildcard 0 accept",
            'drop comment "of its leg a pod reaches listeners bound to its very address by IPv6"',
        ],
    }


def output(range: IPv6Network) -> list[str]:
    """Return what is asked of packets that a node sends by whatever interface."""
    return [f"ip6 daddr {range} goto to_pods_ip6"]


def elsewhere(range: IPv6Network) -> list[str]:
    """Return what is asked of packets that come from, or go to, something that is no leg."""
    return [f'ip6 daddr {range} drop comment "nobody outside begins"', f"ip6 saddr {range} drop"]


def leaving(range: IPv6Network) -> str:
    """Return the rule that no packet leaves a node with a pod's or leg's own address."""
    return (
        f'ip6 saddr {range} ip6 daddr != {range} oifname != "{LEG}*" oifname != "lo" drop'
        ' comment "nothing leaves with a pod\'s own address"'
    )


def frames(range: IPv6Network) -> dict[str, list[str]]:
    """Return the chain for IPv6 frames of pods, in the table `bridge`."""
    with_mac = "ip6 nexthdr ipv6-icmp ip6 length 32 icmpv6 type"
    return {
        "prerouting_ip6": [
            "ip6 saddr :: drop",
            "iifname . ether saddr . ip6 saddr != @pods_ip6 drop",
            # What is behind such a header might be anything.
            "ip6 nexthdr { 0, 43, 60 } drop",
            f"{with_mac} nd-neighbor-solicit iifname . {_OPTION} @solicits_ip6 accept",
            f"{with_mac} nd-neighbor-advert iifname . {_ADDRESS} . {_OPTION} @advertises_ip6 accept",
            "ip6 nexthdr ipv6-icmp ip6 length 24 icmpv6 type nd-neighbor-advert"
            f" iifname . {_ADDRESS} @confirms_ip6 accept",
            f"{_NEIGHBOURS} drop",
            f"{_ROUTERS} drop",
            f"{_GROUPS} drop",
            f"ip6 daddr != {{ {range}, ff02::/16 }} drop",
            "accept",
        ]
    }


def _option(kind: str, pod: Pod) -> str:
    """Return the option of neighbour discovery with a pod's MAC, as a number."""
    return f"{int(kind + mac(pod.address).replace(':', ''), 16):#x}"
