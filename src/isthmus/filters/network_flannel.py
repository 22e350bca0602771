"""Layer network, Flannel: what flanneld reads in etcd, and the list of CNI plugins for jobs and for Apptainer."""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import IPv4Network
from typing import Any

from isthmus.model.node_network import FLANNEL_BRIDGE, FLANNEL_PORT

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


FILTERS: dict[str, Callable[..., object]] = {
    "network_flannel_config": network_flannel_config,
    "network_flannel_list": network_flannel_list,
}
