"""WireGuard on a node: its device, by netlink or a program's socket, and the way of VXLAN's packets to it."""
