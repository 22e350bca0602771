"""The local test bed: subnet, addresses and MACs, derived from its name alone.

Nothing is stored, so concurrent test beds need no registry, and a rebuilt node keeps its address.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from hashlib import sha256
from ipaddress import AddressValueError, IPv4Address, IPv4Network

from isthmus.filters.errors import InputError

DEFAULT_NAME = "isthmus"
MAC_PREFIX = "02:49"
_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_FIRST_INDEX = 2


def local_subnet(name: str, base: str = "10.231.0.0/16") -> str:
    """Return the /24 of a test bed: the first of `base` for `isthmus`, a stable hash of any other name.

    Args:
        name: the test bed's name, a DNS label.
        base: an IPv4 network of 256 subnets, i.e. a /16.

    Returns:
        E.g. `10.231.0.0/24`. Two names may share a subnet (1 in 254); the container runtime then refuses.

    Raises:
        InputError: for a name that is no DNS label, or a base that is no /16.
    """
    if not _LABEL.fullmatch(name):
        raise InputError(f"{name!r} is no name for a test bed", "use lower case letters, digits and '-'")
    network = _network(base)
    if network.prefixlen != 16:
        raise InputError(f"{base} is a /{network.prefixlen}", "give a /16, or set provider_local_subnet itself")
    third = 0 if name == DEFAULT_NAME else int.from_bytes(sha256(name.encode()).digest()[:4]) % 254 + 1
    return f"{network.network_address + 256 * third}/24"


def local_address(subnet: str, index: int) -> str:
    """Return the address with this host part; 1 belongs to the bridge.

    Args:
        subnet: an IPv4 network, e.g. from `local_subnet`.
        index: `provider_local_index` of the node; 2 to 254 in a /24.

    Raises:
        InputError: for an invalid IPv4 network, or an index out of range.
    """
    network = _network(subnet)
    last = network.num_addresses - 2
    if isinstance(index, bool) or not isinstance(index, int) or not _FIRST_INDEX <= index <= last:
        raise InputError(
            f"provider_local_index is {index!r} in {subnet}",
            f"give a whole number from {_FIRST_INDEX} to {last}",
        )
    return str(network.network_address + index)


def local_mac(address: str) -> str:
    """Return a locally administered MAC that contains the four bytes of an IPv4 address.

    Raises:
        InputError: for an invalid IPv4 address.
    """
    try:
        packed = IPv4Address(address).packed
    except AddressValueError as error:
        raise InputError(f"{address!r} is no IPv4 address", "take it from local_address") from error
    return f"{MAC_PREFIX}:{packed.hex(':')}"


def local_keys(nodes: Iterable[str], folder: str, cluster: str) -> dict[str, str]:
    """Return the test bed's SSH keys, path -> comment: the deployer's own and each node's host key."""
    return {f"{folder}/{name}": f"{name} of {cluster}" for name in ("id_ed25519", *nodes)}


def _network(text: str) -> IPv4Network:
    try:
        return IPv4Network(text)
    except ValueError as error:
        raise InputError(f"{text!r} is no IPv4 network", "write one such as 10.231.0.0/24") from error


FILTERS: dict[str, Callable[..., object]] = {
    "local_address": local_address,
    "local_keys": local_keys,
    "local_mac": local_mac,
    "local_subnet": local_subnet,
}
