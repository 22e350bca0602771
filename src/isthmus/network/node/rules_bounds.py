"""How many connections an account may have on a node: without a bound one user fills the kernel's table for everybody.

The rules ask for connection tracking, and the kernel then tracks all packets of the host. To leave the host's own out
(notrack) is no way: the tables of others (podman, kube-proxy, a firewall that lets answers in) need theirs, and an
answer to a pod's masqueraded packet looks like one to the host until it is looked up. So everything is tracked, and
each account is bounded, in chains that come behind those that decide who reaches whom: what these drop leaves no entry.

- A user's pods on the node are one account, known by their leg; those of shared networks are known by their address,
  each its own.
- Processes on the host are known by uid, those of a user's subordinate ids by their range: one user has 65,536 of them.
- Root and the kernel are not bounded, nor is what comes from other machines: on members it is bounded where it begins.

Questions to the node's DNS are bounded as well: its answers cost processor time of everybody's, and a flood of them by
one socket is one connection.

There are two bounds of connections, for `ct count` does not see TCP connections that are closed and still remembered,
and costs a walk over the account's connections each time: so many at once, and so many new ones a second, which is
asked first.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from isthmus.model.node_network import LEG
from isthmus.model.subids import END_ID, Range

# Behind all chains that filter, ours and those of others that use the names of nft(8).
_HOOK = "type filter hook {} priority filter + 5; policy accept"


@dataclass(frozen=True, slots=True)
class Bounds:
    """What one account may have.

    Attributes:
        flows: connections at once.
        rate: new ones a second, after as many as `flows` at once.
        dns: questions to the node's DNS by UDP a second, after as many at once.
    """

    flows: int = 16384
    rate: int = 1000
    dns: int = 1000


def sets() -> dict[str, str]:
    """Return the sets that the kernel fills by itself."""
    kinds = {"uid": "uid", "leg": "ifname", "pod": "ipv4_addr"}
    found = {}
    for key, kind in kinds.items():
        # An element of `rates` is forgotten when it would be full again; one of `flows` with its last connection.
        found[f"rates_{key}"] = f"type {kind}; size 65535; flags dynamic,timeout; timeout 2m"
        found[f"flows_{key}"] = f"type {kind}; size 65535; flags dynamic"
        found[f"dns_{key}"] = f"type {kind}; size 65535; flags dynamic,timeout; timeout 2m"
    return found


def chains(
    bounds: Bounds, subordinate: Iterable[Range], bridges: Iterable[str] = (), *, dns_port: int = 53
) -> dict[str, list[str]]:
    """Return the chains.

    Args:
        bounds: of each account.
        subordinate: ranges of ids that belong to one user each.
        bridges: of the networks that all users share.
        dns_port: where the node's DNS listens.
    """
    ranges = apart(subordinate)
    asks = f"udp dport {dns_port}"
    answered = [f'{asks} iifname "{LEG}*" {_dns("leg", "iifname", bounds)}']
    pods = [f'ct state new iifname "{LEG}*" goto bound_leg']
    for bridge in bridges:
        pods.append(f'ct state new iifname "{bridge}" goto bound_pod')
        answered.append(f'{asks} iifname "{bridge}" {_dns("pod", "ip saddr", bounds)}')
    return {
        **{_chain(each): [f"{_over_rate(bounds)} drop", f"{_over_flows(bounds)} drop"] for each in ranges},
        **{_chain(each, "dns"): [f"{_over_dns(bounds)} drop"] for each in ranges},
        "bound_uid": [*_by_range(ranges, "bound"), *_each("uid", "meta skuid", bounds)],
        "dns_uid": [*_by_range(ranges, "dns"), _dns("uid", "meta skuid", bounds)],
        "bound_leg": _each("leg", "iifname", bounds),
        "bound_pod": _each("pod", "ip saddr", bounds),
        "bound_output": [
            _HOOK.format("output"),
            f"meta skuid != 0 fib daddr type local {asks} jump dns_uid",
            "ct state new meta skuid != 0 goto bound_uid",
        ],
        "bound_input": [_HOOK.format("input"), *answered, *pods],
        "bound_forward": [_HOOK.format("forward"), *pods],
    }


def apart(ranges: Iterable[Range]) -> list[Range]:
    """Return ranges that share no id, for nft takes no others: of two that do, the first."""
    found: list[Range] = []
    for each in sorted(ranges, key=lambda one: one.start):
        begins = max(each.start, found[-1].end if found else 1)
        ends = min(each.end, END_ID)
        if begins < ends:
            found.append(Range(each.name, begins, ends - begins))
    return found


def _each(key: str, expression: str, bounds: Bounds) -> list[str]:
    return [
        f"update @rates_{key} {{ {expression} {_over_rate(bounds)} }} drop",
        f"add @flows_{key} {{ {expression} {_over_flows(bounds)} }} drop",
    ]


def _by_range(ranges: list[Range], kind: str) -> list[str]:
    named = ", ".join(f"{each.start}-{each.end - 1} : goto {_chain(each, kind)}" for each in ranges)
    return [f"meta skuid vmap {{ {named} }}"] if ranges else []


def _dns(key: str, expression: str, bounds: Bounds) -> str:
    return f"update @dns_{key} {{ {expression} {_over_dns(bounds)} }} drop"


def _over_dns(bounds: Bounds) -> str:
    return f"limit rate over {bounds.dns}/second burst {bounds.dns} packets"


def _over_rate(bounds: Bounds) -> str:
    return f"limit rate over {bounds.rate}/second burst {bounds.flows} packets"


def _over_flows(bounds: Bounds) -> str:
    return f"ct count over {bounds.flows}"


def _chain(ids: Range, kind: str = "bound") -> str:
    return f"{kind}_{ids.start}"
