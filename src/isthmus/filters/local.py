"""Addresses of a local test bed: one /24 per test bed, named by its name."""

from __future__ import annotations

import hashlib
import ipaddress

from isthmus.filters.errors import InputError

DEFAULT_NAME = "isthmus"


def local_subnet(name: str, base: str = "10.231.0.0/16") -> str:
    """The /24 of a test bed: the first of `base` for the default name, else one picked by the name's hash."""
    digest = int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "big")
    octet = 0 if name == DEFAULT_NAME else 1 + digest % 254
    return str(list(ipaddress.IPv4Network(base).subnets(new_prefix=24))[octet])


def local_address(subnet: str, index: int) -> str:
    """Address number `index` of `subnet`; 0, 1 (the gateway) and the broadcast address are not for nodes."""
    network = ipaddress.IPv4Network(subnet)
    if not 2 <= index < network.num_addresses - 1:
        raise InputError(
            f"provider_local_index {index} is outside {subnet}",
            f"choose one from 2 to {network.num_addresses - 2} in the inventory",
        )
    return str(network[index])


def local_mac(address: str) -> str:
    """A locally administered MAC address that holds the four bytes of an IPv4 address."""
    packed = ipaddress.IPv4Address(address).packed
    return "02:49:" + ":".join(f"{byte:02x}" for byte in packed)
