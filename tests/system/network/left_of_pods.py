"""What a node still has of pods in a network that users share: namespaces, records, addresses, ends of their wires."""

import json

_FLANNEL = (
    "ls /run/netns | grep ^isthmus-flannel-",
    "ls /run/isthmus/flannel /run/isthmus/cni/flannel | grep '[0-9]$\\|json$'",
    "find /run/isthmus/cni/networks -name '*.*.*.*'",
    "ip -o link show master iflannel | cut -d: -f2",
)
_CNI = (
    "ls /run/netns | grep ^isthmus-cni-",
    "ls /var/lib/isthmus/cni",
    "find /var/lib/cni/networks -name '*.*.*.*'",
)


def left(node, driver):
    """Return their names."""
    looks = _FLANNEL if driver == "flannel" else (*_CNI, _wires(node))
    return {word for look in looks for word in node.run(f"{look} 2>/dev/null").stdout.split()}


def _wires(node):
    interface = json.loads(node.output("cat /etc/isthmus/network.json"))["cni"]["interface"]
    return f"ls -d /sys/class/net/{interface}" if "*" in interface else f"ls /sys/class/net/{interface}/brif"
