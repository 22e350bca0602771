"""Reconciles the node's packet filter with plans: the tables are written once, later only changed set elements.

Each daemon that starts writes them again, and so does a change of users' subordinate ids, in one transaction with all
elements: no moment is without rules. What the kernel counts of each account begins at zero then.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path
from typing import Any

from isthmus.clients import conntrack, nftables
from isthmus.clients.nftables import NftError
from isthmus.model.network import State
from isthmus.model.node_network import NodePlan
from isthmus.model.subids import Range, parse
from isthmus.network import metrics
from isthmus.network.drivers.contract import SharedNetwork
from isthmus.network.gateways.settings import Gateways
from isthmus.network.logins.numbers import Logins
from isthmus.network.node import rules
from isthmus.network.node.rules_bounds import Bounds
from isthmus.support.recall import Memory

# Closed connections are not counted, and need not be remembered as long as Linux does (120).
_TIME_WAIT_S = 30


class NodeFilter:
    """The packet filter of a node.

    Args:
        node: its name.
        settings: what the admin decides.
        subordinate: the file of subordinate ids.
    """

    def __init__(self, node: str, settings: rules.Settings, subordinate: Path = Path("/etc/subuid")) -> None:
        self._node = node
        self._settings = settings
        self._subordinate = subordinate
        self._read: tuple[int, ...] = ()
        self._ranges: list[Range] = []
        self._have: rules.Elements | None = None
        self._memory = Memory()

    def follow(self, desired: NodePlan, state: State) -> None:
        """Make the sets as wanted.

        Raises:
            OSError: nft refused; nothing was changed, and the next call writes all of it.
        """
        want = rules.elements(desired, state, self._node, self._settings, self._memory)
        self._follow_ranges()
        text = rules.change(self._have, want) if self._have is not None else self._whole(want)
        try:
            with metrics.NFT_S.labels(metrics.Rules.FILTER).time():
                nftables.apply(text)
        except NftError as error:
            self._have = None
            raise OSError(str(error)) from error
        self._have = want

    def _follow_ranges(self) -> None:
        """Read the subordinate ids when their file has changed; everything is written again then."""
        with suppress(OSError):
            found = self._subordinate.stat()
            seen = found.st_ino, found.st_mtime_ns, found.st_size
            if seen == self._read:
                return
            self._ranges = parse(self._subordinate.read_text(encoding="utf-8", errors="replace"))
            self._read, self._have = seen, None

    def _whole(self, want: rules.Elements) -> str:
        return rules.base(self._settings, self._ranges) + rules.change({}, want)


def size_tracking(raw: Mapping[str, Any]) -> None:
    """Give the kernel's table of connections room for all accounts, and have it forget what nobody uses.

    Args:
        raw: the daemon's settings of the filter.
    """
    conntrack.at_least("max", raw["bounds"]["table"])
    conntrack.at_most("tcp_timeout_established", raw["bounds"]["established_s"])
    conntrack.at_most("tcp_timeout_time_wait", _TIME_WAIT_S)


def read_rules(
    pods: IPv4Network,
    raw: Mapping[str, Any],
    shared: tuple[SharedNetwork, ...] = (),
    logins: Logins | None = None,
    gateways: Gateways | None = None,
    wireguard_port: int = 0,
    ipv6: IPv6Network | None = None,
) -> rules.Settings:
    """Read the filter's part of the daemon's settings.

    Args:
        pods: the range of private networks.
        raw: the rest.
        shared: the networks that all users share.
        logins: of login pods.
        gateways: of gateways.
        wireguard_port: of WireGuard, where packets between nodes are encrypted.
        ipv6: the range of IPv6 of private networks, where they have one.

    Raises:
        KeyError: a field is missing.
        ValueError: a field has no value that can be.
    """
    return rules.Settings(
        pods=pods,
        admins=frozenset(raw["admins"]),
        slurm=tuple(_ports(each) for each in raw["slurm"]),
        services=tuple(
            rules.Service(rules.Protocol(each["protocol"]), _ports(each["port"])) for each in raw["services"]
        ),
        hosts=tuple(map(IPv4Network, raw["hosts"])),
        servers=tuple(map(IPv4Network, raw["servers"])),
        egress=tuple(_egress(each) for each in raw["egress"]),
        default=rules.Action(raw["default"]),
        shared=shared,
        bounds=Bounds(raw["bounds"]["flows"], raw["bounds"]["rate"], raw["bounds"]["dns"]),
        logins=logins,
        gateways=gateways,
        wireguard_port=wireguard_port,
        ipv6=ipv6,
    )


def _egress(raw: Mapping[str, Any]) -> rules.Egress:
    return rules.Egress(
        rules.Action(raw["action"]),
        IPv4Network(raw["to"]),
        rules.Protocol(raw["protocol"]) if raw["protocol"] != "any" else None,
        tuple(_ports(each) for each in raw["ports"]),
        raw["uid"],
    )


def _ports(raw: str | int) -> rules.Ports:
    first, _, last = str(raw).partition("-")
    return rules.Ports(int(first), int(last or first))
