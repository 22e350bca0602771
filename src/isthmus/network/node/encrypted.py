"""Rules for VXLAN's packets where nodes encrypt them: by the WireGuard device, or not at all."""

from __future__ import annotations

from isthmus.model.networks.wireguard import DEVICE
from isthmus.model.node_network import VXLAN_PORT

_WHY = 'comment "network_encryption"'


def output() -> list[str]:
    """Return what is asked of packets that a node sends; any user may bind a socket to any interface."""
    return [f'udp dport {VXLAN_PORT} oifname != "{DEVICE}" drop {_WHY}', *_only_vxlan("oifname")]


def arriving(port: int) -> list[str]:
    """Return what is asked of packets to a node.

    Args:
        port: WireGuard's.
    """
    return [
        f'udp dport {VXLAN_PORT} iifname != "{DEVICE}" drop {_WHY}',
        *_only_vxlan("iifname"),
        f"udp dport {port} ip saddr != @peers drop",
    ]


def forward() -> list[str]:
    """Return what is asked of packets that a node hands on: none goes by the device."""
    return [f'{way} "{DEVICE}" drop {_WHY}' for way in ("iifname", "oifname")]


def _only_vxlan(way: str) -> list[str]:
    return [f'{way} "{DEVICE}" meta l4proto != udp drop', f'{way} "{DEVICE}" udp dport != {VXLAN_PORT} drop']
