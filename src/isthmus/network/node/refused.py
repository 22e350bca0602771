"""Counts what the node's packet filter refuses, by why.

Each rule that refuses gets a named counter of nft(8), which costs nothing until a packet is refused. Rules of a kind
share one: whom a packet was for is its user's business, and would be a series for each. The values begin at zero
whenever the tables are written again, as with each start of the daemon.

What a rule refuses is known by its chain, for drivers name theirs alike. Not counted is what hosts and pods say without
anybody's will: IPv6, where pods do not have it, what it says of groups, and frames to the bridges' own group addresses.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import StrEnum
from threading import Lock

from isthmus.model.node_network import VETH, VXLAN

# The kernel is asked no more often, however often the metrics are.
LEAST_S = 5.0
_PREFIX = "refused_"
_VERDICT = re.compile(r'\b(?:drop|reject with icmp(?:v6)? type \S+)(?= comment "|$)')


class Why(StrEnum):
    """Why packets are refused."""

    HOST_TO_POD = "host_to_pod"
    POD_TO_HOST = "pod_to_host"
    POD_TO_OUTSIDE = "pod_to_outside"
    OUTSIDE_TO_POD = "outside_to_pod"
    FORGED = "forged"
    BOUNDS = "bounds"


# The first that matches a chain's name.
_CHAINS = {
    r"to_.*": Why.HOST_TO_POD,
    r"from_(.*_)?pods": Why.POD_TO_OUTSIDE,
    r"from_.*|own_leg(_ip6)?|host_services": Why.POD_TO_HOST,
    r"(.*_)?(input|forward)": Why.OUTSIDE_TO_POD,
    r"output|prerouting(_ip6)?": Why.FORGED,
    r"(bound|dns)_.*": Why.BOUNDS,
}
# Whatever the chain: an address that is not the sender's, a tunnel's packet that is not a member's.
_FORGED = re.compile(r"ip saddr != \S+ drop|iifname \. ip6 saddr != |udp dport \d+ ip [sd]addr ")
_NOBODYS = re.compile(
    rf'meta nfproto ipv6 |ether type ip6 |ip6 saddr :: |icmpv6 type {{ mld|iifname "({VXLAN}|{VETH})\*" drop'
    r"|ip daddr 127\."
)


def why(chain: str, rule: str) -> Why | None:
    """Return what a rule that refuses packets refuses them for, None for what is not counted.

    Raises:
        ValueError: the chain has a name that says nothing.
    """
    if _NOBODYS.match(rule):
        return None
    if _FORGED.match(rule):
        return Why.FORGED
    for pattern, found in _CHAINS.items():
        if re.fullmatch(pattern, chain):
            return found
    raise ValueError(f"chain {chain}: nobody said what its rules refuse; name it like those of node.refused")


def counted(chain: str, rules: Iterable[str]) -> Iterator[str]:
    """Give a chain's rules, those that refuse with their counters."""
    for rule in rules:
        verdict = _VERDICT.search(rule)
        reason = why(chain, rule) if verdict else None
        if not verdict or not reason:
            yield rule
        else:
            yield f'{rule[: verdict.start()]}counter name "{_PREFIX}{reason}" {rule[verdict.start() :]}'


def declared() -> dict[str, list[str]]:
    """Return the counters, as blocks of a table."""
    return {f"counter {_PREFIX}{each}": [] for each in Why}


class Refused:
    """Reads them; may be used by several threads.

    Args:
        read: gives a table's counters.
        clock: seconds that never go back.
    """

    def __init__(self, read: Callable[[], Mapping[str, int]], clock: Callable[[], float] = time.monotonic) -> None:
        self._read, self._clock = read, clock
        self._lock = Lock()
        self._read_s = float("-inf")
        self._known: dict[Why, int] = {}

    def packets(self) -> Mapping[Why, int]:
        """Return how many packets were refused, as of at most some seconds ago.

        Raises:
            NetlinkError: the kernel does not answer.
        """
        with self._lock:
            if self._clock() - self._read_s >= LEAST_S:
                found = self._read()
                self._known = {each: found.get(f"{_PREFIX}{each}", 0) for each in Why}
                self._read_s = self._clock()
            return self._known
