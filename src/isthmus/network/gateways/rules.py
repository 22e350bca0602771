"""What the packet filter has more where there are gateways; `node.rules` puts it among the rest.

The text is the same on all nodes. What a set holds makes the difference: only on the gateway that leads out legs are in
`gates`, and ports in `doors`.

A pod's frame for the outside is turned to the user's leg on that gateway where it enters its node's bridge, whatever
MAC the pod gave it; without such a leg it is dropped. A node that does not lead out passes nothing on either. Members
and hosts of the cluster are not outside: pods reach them by their own node, as without gateways.

Where br_netfilter is loaded a pod's own node would track what only crosses its bridge, as a connection without
translation. When that node becomes the gateway which leads out, the entry would hold, and open connections would go on
with the pod's own address. So these frames are not tracked, in both directions.

From outside, only what was sent to an outside address and an exposed port gets in. The rules are asked for each packet,
so a port that is withdrawn ends what is open. An outside address is nobody's otherwise: no server of the host's
answers.
"""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv4Network

from isthmus.model.network import State
from isthmus.model.node_network import LEG, VXLAN, NodePlan, mac
from isthmus.network.gateways.choice import leading, way_out
from isthmus.network.gateways.settings import Gateways, Ingress, Outside
from isthmus.network.node.nat import PORTED

Elements = dict[str, frozenset[str]]
# Sets of the table `bridge`.
BRIDGE_SETS = {"ways": "type ifname : ether_addr", "away": "type ifname", "members": "type ipv4_addr"}
# From where to where, after the address was translated.
_TARGET = "ip daddr . meta l4proto . th dport"
_ANYWHERE = IPv4Network("0.0.0.0/0")


def sets(gateways: Gateways) -> dict[str, str]:
    """Return the declarations of the sets, and of the map `doors`, of the table `inet`."""
    return {
        "gates": "type ifname",
        "exposed": "type ipv4_addr . inet_proto . inet_service",
        "doors": "type ipv4_addr . inet_proto . inet_service : ipv4_addr",
        **{name: "type ipv4_addr; flags interval" for name, _ in _sources(gateways)},
        **{name: "type ipv4_addr" for name, _ in _targets(gateways)},
    }


def crossing(pods: IPv4Network) -> list[str]:
    """Return what is asked first of all frames, in the table `bridge`: those from a gateway to a pod are not tracked.

    Args:
        pods: the range of private networks.
    """
    return [f'iifname "{VXLAN}*" ip saddr != {pods} ip saddr != @members notrack']


def bridged(inside: Iterable[Iterable[IPv4Network]]) -> dict[str, list[str]]:
    """Return the chain for frames of pods, in the table `bridge`.

    Args:
        inside: networks that are not outside, those that may overlap apart.
    """
    return {
        "from_bridged_pods": [
            *(f"ip daddr {{ {', '.join(map(str, each))} }} accept" for each in inside if each),
            "ip daddr @members accept",
            "iifname @away notrack",
            'ether daddr set iifname map @ways accept comment "group gateways"',
            'drop comment "group gateways: none leads out now"',
        ]
    }


def chains(gateways: Gateways) -> dict[str, list[str]]:
    """Return the chains of their own, of the table `inet`."""
    outside = _literal(gateways.networks)
    entering = f'iifname != "{LEG}*" ip saddr != @peers dnat ip to {_TARGET} map @doors'
    return {
        "exposed_in": ["type nat hook prerouting priority dstnat; policy accept", *([entering] if outside else [])],
        "exposed_forward": [
            "ct state related accept",
            f'{_TARGET} != @exposed drop comment "isthmus network expose"',
            *(_ingress(number, rule) for number, rule in enumerate(gateways.ingress)),
            'drop comment "network_ingress: no rule fits"',
        ],
    }


def entering(gateways: Gateways) -> list[str]:
    """Return what is asked first of what comes to this host itself."""
    outside = _literal(gateways.networks)
    return [f'ip daddr {outside} drop comment "network_outside_addresses"'] if outside else []


def forward(gateways: Gateways) -> list[str]:
    """Return the way of what comes from outside to an exposed port."""
    outside = _literal(gateways.networks)
    return [f'oifname "{LEG}*" ct original ip daddr {outside} goto exposed_forward'] if outside else []


def from_pods(gateways: Gateways) -> list[str]:
    """Return what is asked first of what pods send: whose leg it is, and whether it answers to an exposed port."""
    outside = _literal(gateways.networks)
    answers = [f"ct direction reply ct original ip daddr {outside} iifname @gates accept"] if outside else []
    return ['iifname . ip saddr != @networks drop comment "by a leg from its own network alone"', *answers]


def gate() -> str:
    """Return the rule that keeps what is for the outside from going round."""
    return 'iifname != @gates drop comment "group gateways: this node does not lead out"'


def translated(gateways: Gateways, whom: str) -> list[str]:
    """Return the rules by which some packets leave with outside addresses; what none matches goes on.

    Args:
        gateways: the admin's.
        whom: matches packets of pods that go outside.
    """
    named = {each: f"{whom} ip saddr @{name}" for name, each in _sources(gateways)}
    rules = []
    for each in sorted(gateways.outside, key=lambda one: not one.uids):
        match = named.get(each, whom)
        rules += [
            f"{match} meta l4proto {PORTED} snat ip to {each}:1024-65535 persistent",
            f"{match} snat ip to {each} persistent",
        ]
    return rules


def elements(plan: NodePlan, state: State, node: str, gateways: Gateways) -> Elements:
    """Return what each set should hold on a node."""
    leads = node == leading(state)
    ways = {user.uid: way_out(state, user) for user in state.users.values()}
    out = {pod.veth: way for pod in plan.pods.values() if (way := ways.get(pod.uid))}
    open_to = _open(state, gateways) if leads else {}
    return {
        "members": frozenset(str(each.address) for each in state.nodes.values()),
        "ways": frozenset(f"{veth} : {mac(leg)}" for veth, (_, leg) in out.items()),
        "away": frozenset(veth for veth, (gateway, _) in out.items() if gateway != node),
        "gates": frozenset(leg.name for leg in plan.legs.values() if leads),
        "doors": frozenset(f"{door} : {target}" for door, (target, _) in open_to.items()),
        "exposed": frozenset(within for _, within in open_to.values()),
        **{name: _blocks(state, each) if leads else frozenset() for name, each in _sources(gateways)},
        **{name: _reserved(state, rule) if leads else frozenset() for name, rule in _targets(gateways)},
    }


def _open(state: State, gateways: Gateways) -> dict[str, tuple[str, str]]:
    """Return the exposed ports: outside -> the address it leads to, and this with protocol and port."""
    found = {}
    for each in state.exposed.values():
        user, seen = state.users.get(each.uid), gateways.of(each.uid)
        target = user.reserved.get(each.reservation) if user else None
        if target and seen and seen.first == each.address:
            behind = f"{each.protocol} . {each.port}"
            found[f"{each.address} . {behind}"] = str(target), f"{target} . {behind}"
    return found


def _ingress(number: int, rule: Ingress) -> str:
    ports = str(rule.first) if rule.first == rule.last else f"{rule.first}-{rule.last}"
    matches = [f"ip saddr {rule.source}"] if rule.source != _ANYWHERE else []
    matches += [f"ip daddr @{_target(number)}"] if rule.uid is not None else []
    matches.append(f"meta l4proto {rule.protocol} th dport {{ {ports} }}")
    return " ".join([*matches, "accept" if rule.allows else "drop", f'comment "network_ingress, rule {number + 1}"'])


def _sources(gateways: Gateways) -> list[tuple[str, Outside]]:
    return [(f"source_{number}", each) for number, each in enumerate(gateways.outside) if each.uids]


def _targets(gateways: Gateways) -> list[tuple[str, Ingress]]:
    return [(_target(number), rule) for number, rule in enumerate(gateways.ingress) if rule.uid is not None]


def _target(number: int) -> str:
    return f"target_{number}"


def _blocks(state: State, outside: Outside) -> frozenset[str]:
    users = (state.users[uid] for uid in outside.uids if uid in state.users)
    return frozenset(str(block) for user in users for block in user.blocks)


def _reserved(state: State, rule: Ingress) -> frozenset[str]:
    user = state.users.get(rule.uid) if rule.uid is not None else None
    kept = user.reserved.items() if user else ()
    return frozenset(str(address) for name, address in kept if rule.reservation in ("", name))


def _literal(networks: Iterable[IPv4Network]) -> str:
    named = ", ".join(map(_shown, networks))
    return f"{{ {named} }}" if named else ""


def _shown(network: IPv4Network) -> str:
    return str(network.network_address) if network.prefixlen == network.max_prefixlen else str(network)
