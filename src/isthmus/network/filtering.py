"""Keeps the node's packet filter as plans want it: our tables laid down once, then only elements that changed.

Laid down anew are they by each daemon that starts, in one transaction with all elements: no moment is without rules.
"""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import IPv4Network
from typing import Any

from isthmus.clients import nftables
from isthmus.clients.nftables import NftError
from isthmus.model.network import State
from isthmus.model.node_network import NodePlan
from isthmus.network import rules
from isthmus.network.rules_flannel import Flannel


class NodeFilter:
    """The packet filter of a node.

    Args:
        node: its name.
        settings: what the admin decides.
    """

    def __init__(self, node: str, settings: rules.Settings) -> None:
        self._node = node
        self._settings = settings
        self._have: rules.Elements | None = None

    def follow(self, wanted: NodePlan, state: State) -> None:
        """Make the sets as wanted.

        Raises:
            OSError: nft refused; nothing was changed, and the next call lays all down anew.
        """
        want = rules.elements(wanted, state, self._node, self._settings)
        text = rules.change(self._have, want) if self._have is not None else self._whole(want)
        try:
            nftables.apply(text)
        except NftError as error:
            self._have = None
            raise OSError(str(error)) from error
        self._have = want

    def _whole(self, want: rules.Elements) -> str:
        return rules.base(self._settings) + rules.change({}, want)


def read_rules(pods: IPv4Network, told: Mapping[str, Any], flannel: Flannel | None = None) -> rules.Settings:
    """Read the filter's part of the daemon's settings.

    Args:
        pods: the range of private networks.
        told: the rest.
        flannel: the network that all users share, if there is one.

    Raises:
        KeyError: a field is missing.
        ValueError: a field has no value that can be.
    """
    return rules.Settings(
        pods=pods,
        admins=frozenset(told["admins"]),
        slurm=tuple(_ports(each) for each in told["slurm"]),
        services=tuple(
            rules.Service(rules.Protocol(each["protocol"]), _ports(each["port"])) for each in told["services"]
        ),
        hosts=tuple(map(IPv4Network, told["hosts"])),
        egress=tuple(_egress(each) for each in told["egress"]),
        default=rules.Action(told["default"]),
        flannel=flannel,
    )


def _egress(told: Mapping[str, Any]) -> rules.Egress:
    return rules.Egress(
        rules.Action(told["action"]),
        IPv4Network(told["to"]),
        rules.Protocol(told["protocol"]) if told["protocol"] != "any" else None,
        tuple(_ports(each) for each in told["ports"]),
        told["uid"],
    )


def _ports(told: str | int) -> rules.Ports:
    first, _, last = str(told).partition("-")
    return rules.Ports(int(first), int(last or first))
