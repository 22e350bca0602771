"""Private networks: etcd gives each pod an address from its user's blocks."""

from __future__ import annotations

from isthmus.model.network import Driver
from isthmus.model.node_network import VXLAN_PORT
from isthmus.network.drivers.contract import Definition
from isthmus.network.state import ipam

DEFINITION = Definition(Driver.PRIVATE, ipam.take, has_addresses=True, is_traced=True, tunnel_ports=(VXLAN_PORT,))
