"""The packet filter of a node, as text for nft(8): a static part, and set elements that follow what the node has.

Two tables of ours, `inet isthmus` and `bridge isthmus`, and nothing of anybody else's. Five questions are answered:
- May this host process talk to that pod? By the uid of its socket and the destination: the leg's interface alone says
  nothing, for packets to the node's own leg go by lo. It is asked too, with the VXLAN device and the pods' host ends:
  any user may bind a socket to any interface, and broadcast there. By a leg go packets to its own network alone, for
  the kernel asks all of it for any other address (ARP). Only root, admins and the owner may begin; later packets of a
  TCP connection have no socket any more when its process has closed it, so they pass as established. Other protocols
  have no such tail and are asked each time. An answer that begins a connection is asked too, where it comes from a leg:
  anybody may bind its address, and wait there for a pod to call.
- May this pod talk to the host? On its own leg to DNS and to listeners bound to the leg itself (PMIx), never to those
  bound to all addresses; on other addresses of the host to Slurm's ports and what is allowed by settings.
- May it talk to the outside? Never to other legs, nodes, link-local or metadata addresses; then rules, the first that
  matches, then the default. Each packet is asked, so a new rule also ends what is open. Nothing from outside begins.
  A pod's user binds any port in there, and many a server (NFS, rsh, LPD) trusts any client whose port is below 1024:
  hosts get no packet from such, and the outside sees another.
  Where there are gateways, one of them asks this for all nodes, and passes on what comes to exposed ports (`gateways`).
- Is this VXLAN packet the kernel's own? What leaves by a leg is marked, and its VXLAN packet inherits mark and socket;
  a user's forged one has no mark (which only CAP_NET_ADMIN can set). In: from members only, and none is forwarded to
  members, for a container of another network on a node would be seen with that node's address.
- Is this frame from the pod whose port it comes from? By MAC, IPv4 source and ARP sender.
All of it is about IPv4; IPv6 is dropped, or asked the same where a site has it (`ipv6`).

With br_netfilter loaded frames bridged between pods pass the `inet` hooks too, and appear as going from a leg to the
same leg. Masquerading is therefore never done towards a leg.

A rule that the admin's settings made, or that users ask about, says so in its comment: nft shows it, and so does
`isthmus network trace`, which walks this very text (`ruleset`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from ipaddress import IPv4Network, IPv6Network
from itertools import chain
from typing import TypeVar

from isthmus.model.network import State
from isthmus.model.node_network import LEG, VETH, VXLAN, VXLAN_PORT, Leg, NodePlan, Pod, SharedPod, mac
from isthmus.model.subids import Range
from isthmus.network.dns.records import FIGURES_PORT, HOST_ADDRESS
from isthmus.network.drivers.contract import SharedNetwork
from isthmus.network.drivers.registry import tunnel_ports
from isthmus.network.gateways import rules as gateway_rules
from isthmus.network.gateways.settings import Gateways
from isthmus.network.logins import rules as login_rules
from isthmus.network.logins.numbers import Logins
from isthmus.network.node import encrypted, ipv6, refused, rules_bounds
from isthmus.network.node.nat import PORTED, PRIVILEGED, masquerade
from isthmus.network.node.rules_bounds import Bounds
from isthmus.support.recall import Memory

TABLE = "isthmus"
# A bit of a packet's mark that neither Kubernetes (14, 15) nor Tailscale (16 to 23) uses.
MARK = 0x04000000
_ANYWHERE = IPv4Network("0.0.0.0/0")
Elements = Mapping[str, frozenset[str]]
T = TypeVar("T")


class Action(StrEnum):
    """What happens to a packet that leaves for the outside."""

    ALLOW = "allow"
    DENY = "deny"


class Protocol(StrEnum):
    """What a rule may name."""

    TCP = "tcp"
    UDP = "udp"
    ICMP = "icmp"


@dataclass(frozen=True, slots=True)
class Ports:
    """Ports `first` to `last`, both included."""

    first: int
    last: int

    def __str__(self) -> str:
        """Return what nft calls them."""
        return str(self.first) if self.first == self.last else f"{self.first}-{self.last}"


@dataclass(frozen=True, slots=True)
class Service:
    """Something on the nodes that every pod may reach."""

    protocol: Protocol
    ports: Ports


@dataclass(frozen=True, slots=True)
class Egress:
    """A rule for what pods send outside; what is left out matches everything.

    Attributes:
        action: what happens to a packet that matches.
        to: its destination.
        protocol: its protocol.
        ports: its destination port, one of these; TCP or UDP, or both when there is no protocol.
        uid: whose pod sent it.
    """

    action: Action
    to: IPv4Network = _ANYWHERE
    protocol: Protocol | None = None
    ports: tuple[Ports, ...] = ()
    uid: int | None = None


@dataclass(frozen=True, slots=True)
class Settings:
    """What the admin decides; the same on all nodes.

    Attributes:
        pods: the cluster's pod range.
        admins: uids besides root that may talk to every pod.
        slurm: TCP ports of Slurm's daemons and of srun (SrunPortRange), reached by pods on all nodes.
        services: what else pods may reach on nodes.
        hosts: addresses of the cluster's own hosts besides the members': pods reach them like nodes.
        barred: no pod ever reaches these: loopback, link-local, multicast, and the metadata services of clouds that
            have an address of their own (Azure, Alibaba, Oracle; the others' is 169.254.169.254).
        servers: of the users' homes, where no member has them: no pod ever reaches these.
        egress: rules for the outside; the first that matches decides.
        default: what happens where none matches.
        dns_port: where pods find DNS on their leg.
        shared: the networks that all users share.
        bounds: of each account's connections on a node.
        logins: of login pods; None for a cluster without.
        gateways: of gateways; None for a cluster without.
        wireguard_port: of WireGuard, where nodes encrypt what pods send to one another; 0 where they do not.
        ipv6: the cluster's range of IPv6; None where pods have none.
    """

    pods: IPv4Network
    admins: frozenset[int] = frozenset()
    slurm: tuple[Ports, ...] = (Ports(6817, 6819),)
    services: tuple[Service, ...] = ()
    hosts: tuple[IPv4Network, ...] = ()
    barred: tuple[IPv4Network, ...] = (
        IPv4Network("127.0.0.0/8"),
        IPv4Network("169.254.0.0/16"),
        IPv4Network("168.63.129.16/32"),
        IPv4Network("100.100.100.200/32"),
        IPv4Network("192.0.0.192/32"),
        IPv4Network("224.0.0.0/3"),
    )
    servers: tuple[IPv4Network, ...] = ()
    egress: tuple[Egress, ...] = ()
    default: Action = Action.ALLOW
    dns_port: int = 53
    shared: tuple[SharedNetwork, ...] = ()
    bounds: Bounds = field(default_factory=Bounds)
    logins: Logins | None = None
    gateways: Gateways | None = None
    wireguard_port: int = 0
    ipv6: IPv6Network | None = None


def base(settings: Settings, subordinate: Iterable[Range] = ()) -> str:
    """Return the tables with their chains and empty sets; they replace ours, in one transaction with what follows.

    Args:
        settings: the admin's.
        subordinate: ranges of ids of which each is one user's.
    """
    sets = {
        "peers": "type ipv4_addr",
        "owned": "type uid . ipv4_addr; flags interval",
        "legs": "type ifname . ipv4_addr",
        "networks": "type ifname . ipv4_addr; flags interval",
        "pairs": "type ifname . ifname",
        **rules_bounds.sets(),
        **(login_rules.sets() if settings.logins else {}),
        **(gateway_rules.sets(settings.gateways) if settings.gateways else {}),
        **(ipv6.SETS if settings.ipv6 else {}),
        **{_user_set(uid): "type ifname" for uid in _named_uids(settings)},
        **{each.user_set(uid): "type ipv4_addr" for each in settings.shared for uid in _named_uids(settings)},
        **_merged(each.sets() for each in settings.shared),
    }
    bridge_sets = {
        "pods": "type ifname . ether_addr . ipv4_addr",
        **(gateway_rules.BRIDGE_SETS if settings.gateways else {}),
        **(ipv6.BRIDGE_SETS if settings.ipv6 else {}),
    }
    declared = {"inet": sets, "bridge": bridge_sets}
    bounds = rules_bounds.chains(
        settings.bounds, subordinate, [each.bridge for each in settings.shared], dns_port=settings.dns_port
    )
    text = ""
    for family, deciding in tables(settings).items():
        chains = {**deciding, **(bounds if family == "inet" else {})}
        parts = [
            _block(f"{'map' if ' : ' in what else 'set'} {name}", [what]) for name, what in declared[family].items()
        ]
        parts += [_block(head, lines) for head, lines in refused.declared().items()]
        parts += [_block(f"chain {name}", refused.counted(name, rules)) for name, rules in chains.items()]
        text += f"table {family} {TABLE}\ndelete table {family} {TABLE}\n{_block(f'table {family} {TABLE}', parts)}\n"
    return text


def tables(settings: Settings) -> dict[str, dict[str, list[str]]]:
    """Return the rules that decide who reaches whom, family -> chain -> rules; a base chain begins with its hook."""
    return {"inet": _chains(settings), "bridge": _bridge_chains(settings)}


def elements(
    plan: NodePlan, state: State, node: str, settings: Settings, memory: Memory | None = None
) -> dict[str, frozenset[str]]:
    """Return what each set should hold on a node.

    Args:
        plan: the node's legs and pods.
        state: its nodes are the members.
        node: whose filter this is.
        settings: those `base` was given.
        memory: of who asks again and again; its round ends here.
    """
    legs, memory = plan.legs.values(), memory or Memory()
    recall = memory.recall
    each_leg = [recall(("leg", leg.vni), leg, _of_leg, leg) for leg in legs]
    each_pod = [recall(("pod", pod.job), pod, _of_pod, pod) for pod in plan.pods.values()]
    found = {
        "peers": frozenset(str(peer.address) for name, peer in state.nodes.items() if name != node),
        "owned": frozenset(chain.from_iterable(each.owned for each in each_leg)),
        "legs": frozenset(each.own for each in each_leg).union(
            *(each.own_legs(_pods_of(each, plan)) for each in settings.shared)
        ),
        "networks": frozenset(chain.from_iterable(each.networks for each in each_leg)),
        "pairs": frozenset(each.pair for each in each_leg),
        "pods": frozenset(each_pod),
        **{_user_set(uid): frozenset(leg.name for leg in legs if leg.uid == uid) for uid in _named_uids(settings)},
        **_merged(each.elements(_pods_of(each, plan), _named_uids(settings), state) for each in settings.shared),
        **(login_rules.elements(state, node, settings.logins, recall) if settings.logins else {}),
        **(gateway_rules.elements(plan, state, node, settings.gateways) if settings.gateways else {}),
        **(ipv6.elements(plan) if settings.ipv6 else {}),
    }
    memory.turn()
    return found


@dataclass(frozen=True, slots=True)
class _OfLeg:
    """Elements of one leg; `own` is of the set `legs`."""

    owned: tuple[str, ...]
    own: str
    networks: tuple[str, ...]
    pair: str


def _of_leg(leg: Leg) -> _OfLeg:
    return _OfLeg(
        tuple(f"{leg.uid} . {block}" for block in leg.blocks),
        f"{leg.name} . {leg.address}",
        tuple(f"{leg.name} . {block}" for block in leg.blocks),
        f"{leg.name} . {leg.name}",
    )


def _of_pod(pod: Pod) -> str:
    return f"{pod.veth} . {mac(pod.address)} . {pod.address}"


def change(have: Elements, want: Elements) -> str:
    """Return the commands that make sets with some elements hold others; empty when they do."""
    commands = [
        f"{verb} element {_family(name)} {TABLE} {name} {{ {', '.join(sorted(some))} }}\n"
        for verb, first, second in (("delete", have, want), ("add", want, have))
        for name in sorted(want)
        if (some := first.get(name, frozenset()) - second.get(name, frozenset()))
    ]
    return "".join(commands)


def _bridge_chains(settings: Settings) -> dict[str, list[str]]:
    six = ipv6.frames(settings.ipv6) if settings.ipv6 else {}
    if not settings.gateways:
        return {"prerouting": _port_rules("accept", six), **six}
    inside = [[settings.pods], settings.barred, settings.hosts]
    ports = _port_rules("goto from_bridged_pods", six, gateway_rules.crossing(settings.pods))
    return {"prerouting": ports, **gateway_rules.bridged(inside), **six}


def _port_rules(packets: str, six: Iterable[str], crossing: Iterable[str] = ()) -> list[str]:
    """Return the rules for frames.

    Args:
        packets: what happens to a pod's own IPv4.
        six: the chain that IPv6 goes to; none where it is dropped.
        crossing: what comes first.
    """
    return [
        "type filter hook prerouting priority filter; policy accept",
        *crossing,
        f'iifname != "{VETH}*" accept',
        "ether type 8021q drop",
        *[f"ether type ip6 goto {each}" for each in six or ()],
        "ether type ip6 drop",
        f"iifname . ether saddr . ip saddr @pods {packets}",
        "iifname . ether saddr . arp saddr ip @pods iifname . arp saddr ether . arp saddr ip @pods accept",
        "drop",
    ]


def _chains(settings: Settings) -> dict[str, list[str]]:
    pods = settings.pods
    return {
        "output": _output(settings),
        "to_pods": _to_pods(settings),
        **_untracked(settings),
        "input": [
            "type filter hook input priority filter; policy accept",
            f"udp dport {VXLAN_PORT} ip saddr != @peers drop",
            *(gateway_rules.entering(settings.gateways) if settings.gateways else []),
            *(encrypted.arriving(settings.wireguard_port) if settings.wireguard_port else []),
            'iifname "lo" accept',
            f'iifname "{LEG}*" goto from_leg',
            *_from_ports(),
            f"ip daddr {pods} ct state established,related accept",
            _said(f"ip daddr {pods} drop", _NOBODY_BEGINS),
            f"ip saddr {pods} drop",
            *(ipv6.elsewhere(settings.ipv6) if settings.ipv6 else []),
        ],
        "from_leg": [
            *_with_ipv6(settings, _sane(pods), "goto from_leg_ip6"),
            "ct state established,related accept",
            "iifname . ip daddr @legs goto own_leg",
            f"ip daddr {pods} drop",
            "jump host_services",
            _said("drop", _NOT_OFFERED),
        ],
        "own_leg": [
            "icmp type echo-request accept",
            f"meta l4proto {{ tcp, udp }} th dport {settings.dns_port} accept",
            "tcp dport 1024-65535 socket wildcard 0 accept",
            _said("drop", "of its leg a pod reaches DNS, and listeners bound to its very address"),
        ],
        "host_services": _host_services(settings),
        "forward": _forward(settings),
        "from_pods": _from_pods(settings),
        "postrouting": _postrouting(settings),
        "from_untranslated_pods": _untranslated(settings),
        **_merged(_shared_chains(each, settings) for each in settings.shared),
        **(login_rules.chains(settings.logins, settings.admins) if settings.logins else {}),
        **(gateway_rules.chains(settings.gateways) if settings.gateways else {}),
        **(ipv6.chains(settings.ipv6, _trusted(settings)) if settings.ipv6 else {}),
    }


def _postrouting(settings: Settings) -> list[str]:
    leaving = _leaving(settings)
    outside = f"{leaving} ip daddr != @peers"
    if settings.hosts:
        outside += f" ip daddr != {{ {', '.join(map(str, settings.hosts))} }}"
    return [
        "type nat hook postrouting priority srcnat; policy accept",
        *(gateway_rules.translated(settings.gateways, outside) if settings.gateways else []),
        *masquerade(leaving),
    ]


def _leaving(settings: Settings) -> str:
    pods = settings.pods
    return f'ip saddr {pods} ip daddr != {pods} oifname != "{LEG}*" oifname != "lo"'


def _untranslated(settings: Settings) -> list[str]:
    """Only connections are translated: a packet that is of none, a late answer say, must not leave as it is."""
    return [
        "type filter hook postrouting priority srcnat + 1; policy accept",
        _said(f"{_leaving(settings)} drop", "nothing leaves with a pod's own address"),
        *([ipv6.leaving(settings.ipv6)] if settings.ipv6 else []),
    ]


def _untracked(settings: Settings) -> dict[str, list[str]]:
    """A packet of a tunnel is one of thousands of flows of its own, and each packet in it is tracked anyway."""
    ports = [VXLAN_PORT, *([settings.wireguard_port] if settings.wireguard_port else [])]
    return {
        name: [
            f"type filter hook {hook} priority raw; policy accept",
            *(f"udp dport {port} ip {way} @peers notrack" for port in ports),
        ]
        for name, hook, way in (("before", "prerouting", "saddr"), ("before_output", "output", "daddr"))
    }


def _forward(settings: Settings) -> list[str]:
    pods = settings.pods
    return [
        "type filter hook forward priority filter; policy accept",
        "iifname . oifname @pairs accept",
        *(encrypted.forward() if settings.wireguard_port else []),
        f'iifname "{LEG}*" goto from_pods',
        *_from_ports(),
        f"udp dport {VXLAN_PORT} ip daddr @peers drop",
        *(gateway_rules.forward(settings.gateways) if settings.gateways else []),
        f'oifname "{LEG}*" ct state established,related accept',
        *(login_rules.forward(f"{LEG}*") if settings.logins else []),
        _said(f'oifname "{LEG}*" drop', _NOBODY_BEGINS),
        f"ip daddr {pods} drop",
        f"ip saddr {pods} drop",
        *(ipv6.elsewhere(settings.ipv6) if settings.ipv6 else []),
    ]


def _output(settings: Settings) -> list[str]:
    pods = settings.pods
    mark = f"meta mark set meta mark | {MARK:#x}"
    return [
        "type filter hook output priority filter; policy accept",
        f'oifname "{LEG}*" {mark}',
        f'meta oifkind "vxlan" {mark}',
        f"udp dport {{ {', '.join(map(str, tunnel_ports()))} }} meta mark & {MARK:#x} == 0 meta skuid != 0 drop",
        *(encrypted.output() if settings.wireguard_port else []),
        *(f'oifname "{prefix}*" goto to_pods' for prefix in (LEG, VXLAN, VETH)),
        f"ip daddr {pods} goto to_pods",
        *(ipv6.output(settings.ipv6) if settings.ipv6 else []),
        _said(f"ip daddr {HOST_ADDRESS} tcp dport {FIGURES_PORT} meta skuid != 0 {_REFUSE}", _FIGURES),
    ]


def _to_pods(settings: Settings) -> list[str]:
    trusted = ", ".join(map(str, _trusted(settings)))
    return [
        *_with_ipv6(settings, ["meta nfproto ipv6 drop"], "goto to_pods_ip6"),
        _said(f"meta skuid {{ {trusted} }} accept", "root, and network_admin_users"),
        *(
            _said(f'oifname "{prefix}*" oifname . ip daddr != @networks drop', "by a leg to its own network alone")
            for prefix in (LEG, VXLAN, VETH)
        ),
        _said("meta skuid . ip daddr @owned accept", "whose pods they are"),
        *(login_rules.to_pods(settings.logins) if settings.logins else []),
        _said(
            f"ip saddr {settings.pods} tcp sport != {settings.dns_port} tcp flags & {_FLAGS} == (syn | ack) drop",
            "who listens on a leg is root or its owner",
        ),
        _said(f"tcp flags & {_FLAGS} == syn {_REFUSE}", _OWN_UID),
        "meta l4proto tcp ct state established accept",
        "ct direction reply ct state established accept",
        "ct state related accept",
        _said(_REFUSE, _OWN_UID),
        "drop",
    ]


def _trusted(settings: Settings) -> list[int]:
    return sorted({0, *settings.admins})


def _with_ipv6(settings: Settings, rules: list[str], verdict: str) -> list[str]:
    """Return rules that begin with IPv6, which goes elsewhere where pods have it."""
    return [f"meta nfproto ipv6 {verdict}", *rules[1:]] if settings.ipv6 else rules


def _host_services(settings: Settings) -> list[str]:
    slurm = ", ".join(map(str, settings.slurm))
    allowed = [
        _said(f"{service.protocol} dport {service.ports} accept", "network_host_ports") for service in settings.services
    ]
    if slurm:
        allowed = [_said(f"tcp dport {{ {slurm} }} accept", "Slurm, and network_srun_ports"), *allowed]
    allowed += login_rules.host_services(settings.logins) if settings.logins else []
    return [_said(f"meta l4proto {PORTED} th sport {PRIVILEGED} drop", "a port that servers take for root's"), *allowed]


def _shared_chains(network: SharedNetwork, settings: Settings) -> dict[str, list[str]]:
    return network.chains(settings.pods, _outside(settings, lambda uid: f"ip saddr @{network.user_set(uid)}"))


def _pods_of(network: SharedNetwork, plan: NodePlan) -> dict[int, SharedPod]:
    return {job: pod for job, pod in plan.shared.items() if pod.driver == network.driver}


def _merged(several: Iterable[Mapping[str, T]]) -> dict[str, T]:
    return {name: value for each in several for name, value in each.items()}


def _from_pods(settings: Settings) -> list[str]:
    return [
        *_with_ipv6(settings, _sane(settings.pods), _said("drop", ipv6.NO_WAY_OUT)),
        *(login_rules.from_pods() if settings.logins else []),
        *(gateway_rules.from_pods(settings.gateways) if settings.gateways else []),
        _said(f'oifname "{LEG}*" drop', _OTHERS),
        _said(f"ip daddr {settings.pods} drop", _OTHERS),
        *_outside(settings, lambda uid: f"iifname @{_user_set(uid)}"),
    ]


def _outside(settings: Settings, is_users: Callable[[int], str]) -> list[str]:
    """Return the rules for what goes to hosts and further; `is_users` matches packets of a user's pods."""
    hosts = ["ip daddr @peers jump host_services", _said("ip daddr @peers drop", _NOT_OFFERED)]
    if settings.hosts:
        named = ", ".join(map(str, settings.hosts))
        hosts += [f"ip daddr {{ {named} }} jump host_services", _said(f"ip daddr {{ {named} }} drop", _NOT_OFFERED)]
    barred, servers = (", ".join(map(str, each)) for each in (settings.barred, settings.servers))
    return [
        *hosts,
        *([gateway_rules.gate()] if settings.gateways else []),
        *([_said(f"ip daddr {{ {barred} }} drop", "loopback, link-local, multicast, metadata")] if barred else []),
        *([_said(f"ip daddr {{ {servers} }} drop", "base_home_nfs_source")] if servers else []),
        *(_said(_egress(rule, is_users), "network_egress") for rule in settings.egress),
        _said(_VERDICTS[settings.default], "network_egress_default"),
    ]


def _egress(rule: Egress, is_users: Callable[[int], str]) -> str:
    matches = []
    if rule.uid is not None:
        matches.append(is_users(rule.uid))
    if rule.to != _ANYWHERE:
        matches.append(f"ip daddr {rule.to}")
    if rule.ports:
        protocols = rule.protocol or "{ tcp, udp }"
        matches.append(f"meta l4proto {protocols} th dport {{ {', '.join(map(str, rule.ports))} }}")
    elif rule.protocol:
        matches.append(f"meta l4proto {rule.protocol}")
    return " ".join([*matches, _VERDICTS[rule.action]])


def _sane(pods: IPv4Network) -> list[str]:
    """Drop what cannot come from a pod."""
    return ["meta nfproto ipv6 drop", f"ip saddr != {pods} drop"]


def _from_ports() -> list[str]:
    """Drop what comes up past the bridge; only frames to the bridges' own group addresses do."""
    return [f'iifname "{prefix}*" drop' for prefix in (VXLAN, VETH)]


def _said(rule: str, why: str) -> str:
    return f'{rule} comment "{why}"'


def _named_uids(settings: Settings) -> list[int]:
    return sorted({rule.uid for rule in settings.egress if rule.uid is not None})


def _user_set(uid: int) -> str:
    return f"user_{uid}"


def _family(name: str) -> str:
    return "bridge" if name in ("pods", *gateway_rules.BRIDGE_SETS, *ipv6.BRIDGE_SETS) else "inet"


def _block(head: str, lines: Iterable[str]) -> str:
    return "\n".join([f"{head} {{", *lines, "}"])


_FIGURES = "figures of the node's DNS are for root"
_OTHERS = "pods and legs of another user"
_FLAGS = "(fin | syn | rst | ack)"
_OWN_UID = "a host process reaches pods of its own uid"
_NOT_OFFERED = "of hosts, pods reach Slurm and network_host_ports"
_NOBODY_BEGINS = "nobody outside begins"
_REFUSE = "reject with icmp type admin-prohibited"
_VERDICTS = {Action.ALLOW: "accept", Action.DENY: _REFUSE}
