"""Layer network, Flannel: what flanneld reads in etcd, and the list of CNI plugins for jobs and for Apptainer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from ipaddress import IPv4Address, IPv4Network
from typing import Any

from isthmus.filters.network.layer import host_interfaces, interface_overlap
from isthmus.model.node_network import FLANNEL_BRIDGE, FLANNEL_PORT, FLANNEL_VXLAN

# The newest that the plugin `flannel` speaks; the first with CHECK.
CNI_VERSION = "0.4.0"
# What plugins remember ends with the machine, as what they made does.
FOLDER = "/run/isthmus/cni"
SUBNET_FILE = "/run/flannel/subnet.env"


def network_flannel_config(pods: str, prefix: int, backend: str) -> dict[str, Any]:
    """Return what flanneld reads in etcd (flannel-io/flannel, Documentation/configuration.md).

    Args:
        pods: the range of the whole network, CIDR.
        prefix: length of the part that a node gets.
        backend: vxlan or host-gw.
    """
    ways: dict[str, dict[str, Any]] = {"vxlan": {"VNI": 1, "Port": FLANNEL_PORT}, "host-gw": {}}
    # With nftables it does not look for iptables; of either it makes no rule, for ours are the only ones.
    return {
        "Network": str(IPv4Network(pods)),
        "SubnetLen": prefix,
        "EnableNFTables": False,
        "Backend": {"Type": backend, **ways[backend]},
    }


def network_flannel_list(folder: str = FOLDER, subnet_file: str = SUBNET_FILE) -> dict[str, Any]:
    """Return the list of plugins: Flannel's hands on to `bridge` and `host-local` with the node's own subnet.

    Args:
        folder: where plugins keep what they remember.
        subnet_file: what flanneld writes.
    """
    plugin = {
        "type": "flannel",
        "subnetFile": subnet_file,
        "dataDir": f"{folder}/flannel",
        "ipam": {"type": "host-local", "dataDir": f"{folder}/networks"},
        "delegate": {
            "type": "bridge",
            "bridge": FLANNEL_BRIDGE,
            "isDefaultGateway": True,
            # A node that came back with another subnet.
            "forceAddress": True,
            "hairpinMode": True,
            # Who is hidden behind the node's address is the daemon's to say, with all other rules.
            "ipMasq": False,
        },
    }
    return {"cniVersion": CNI_VERSION, "name": "flannel", "plugins": [plugin]}


def network_flannel_problems(
    facts: Mapping[str, Any], address: str, pods: str, linked: Iterable[str] = ()
) -> list[str]:
    """Return why a host cannot have Flannel's network.

    Args:
        facts: Ansible's, of its interfaces.
        address: the host's on the cluster's network.
        pods: the range of the whole network, CIDR.
        linked: addresses that must be on the same link; those of all members with host-gw.
    """
    found = host_interfaces(facts)
    others = [each for each in found if each.get("device") not in (FLANNEL_BRIDGE, FLANNEL_VXLAN)]
    problems = [interface_overlap(each, IPv4Network(pods), "network_flannel_range") for each in others]
    links = [each["ipv4"] for each in found if (each.get("ipv4") or {}).get("address") == address]
    link = [IPv4Network(f"{address}/{each.get('prefix', 32)}", strict=False) for each in links]
    problems += [
        f"{other} is not on the link {link[0]} of {address}; set network_flannel_backend to vxlan"
        for other in linked
        if link and IPv4Address(other) not in link[0]
    ]
    return [problem for problem in problems if problem]


FILTERS: dict[str, Callable[..., object]] = {
    "network_flannel_config": network_flannel_config,
    "network_flannel_list": network_flannel_list,
    "network_flannel_problems": network_flannel_problems,
}
