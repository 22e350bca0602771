"""Layer network, Flannel: flanneld's configuration in etcd, and the list of CNI plugins for jobs and for Apptainer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from ipaddress import IPv4Address, IPv4Network
from typing import Any

from isthmus.filters.network.interfaces import host_interfaces, interface_overlap
from isthmus.model.flannel import BRIDGE, PORT, VXLAN

# The newest that the plugin `flannel` supports; the first with CHECK.
CNI_VERSION = "0.4.0"
# The plugins' state must end with a boot, as their interfaces do.
FOLDER = "/run/isthmus/cni"
SUBNET_FILE = "/run/flannel/subnet.env"


def network_flannel_config(pods: str, prefix: int, backend: str) -> dict[str, Any]:
    """Return flanneld's configuration in etcd (flannel-io/flannel, Documentation/configuration.md).

    Args:
        pods: the range of the whole network, CIDR.
        prefix: length of a node's subnet.
        backend: vxlan or host-gw.
    """
    ways: dict[str, dict[str, Any]] = {"vxlan": {"VNI": 1, "Port": PORT}, "host-gw": {}}
    # flanneld writes no rules of either kind: the node daemon's are the only ones.
    return {
        "Network": str(IPv4Network(pods)),
        "SubnetLen": prefix,
        "EnableNFTables": False,
        "Backend": {"Type": backend, **ways[backend]},
    }


def network_flannel_list(folder: str = FOLDER, subnet_file: str = SUBNET_FILE) -> dict[str, Any]:
    """Return the list of plugins: Flannel's delegates to `bridge` and `host-local` with the node's subnet.

    Args:
        folder: of the plugins' state.
        subnet_file: written by flanneld.
    """
    plugin = {
        "type": "flannel",
        "subnetFile": subnet_file,
        "dataDir": f"{folder}/flannel",
        "ipam": {"type": "host-local", "dataDir": f"{folder}/networks"},
        "delegate": {
            "type": "bridge",
            "bridge": BRIDGE,
            "isDefaultGateway": True,
            # For a node that comes back with another subnet.
            "forceAddress": True,
            "hairpinMode": True,
            # Masquerading is decided by the node daemon, as all other rules are.
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
    others = [each for each in found if each.get("device") not in (BRIDGE, VXLAN)]
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
