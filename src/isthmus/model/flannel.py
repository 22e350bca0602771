"""Names and ports of Flannel's network on a node, for the deployer's filters and the daemon."""

# The bridge of all users; `flannel.1` is Flannel's own name for its VXLAN device.
BRIDGE, VXLAN = "iflannel", "flannel.1"
# Linux's port from before RFC 7348, which Flannel keeps.
PORT = 8472
