"""The network's attacks as tables: each way's name, what `tests/support/attacks/network.py` is to do, and where.

What stands in braces is an address, interface or name of the bed (`network_attack`): near and far are two nodes.
"""

from itertools import product

from tests.support.attacks.network_bed import PORT

KINDS = ("tcp", "udp", "icmp")
PLACES = ("pod_near", "pod_far", "leg_near", "leg_far")
SQUATTERS_S = 20


def to(kind, target, port=PORT, prefix="", **more):
    """Return a way to an address."""
    words = "".join(f" {name} {value}" for name, value in more.items())
    where = {"address": f"{{{target}}}"} | ({} if kind == "icmp" else {"port": port})
    return {"name": f"{prefix}{kind} {target} {port}{words}", "kind": kind, **where, **more}


def send(name, address, port=4789, **more):
    """Return a way that is refused where it begins."""
    return {"name": name, "kind": "send", "address": address, "port": port, **more}


def run(name, *argv):
    """Return a way that is a command."""
    return {"name": name, "kind": "command", "argv": list(argv)}


HOST = [
    *(to(kind, f"victim_{place}") for kind, place in product(KINDS, PLACES)),
    *(
        to(kind, "victim_pod_near", device=device)
        for kind, device in product(
            ("tcp", "udp"), ("{victim_device}", "{victim_vxlan}", "{victim_veth}", "lo", "{uplink}")
        )
    ),
    *(to(kind, "victim_pod_near", source="{victim_leg_near}") for kind in ("tcp", "udp")),
    send("broadcast", "255.255.255.255", PORT, device="{victim_device}"),
    send("multicast", "224.0.0.1", PORT, device="{victim_device}"),
]
VXLAN = [
    send("to a member", "{far}"),
    send("Flannel's port", "{far}", 8472),
    send("to its own node", "{near}"),
    send("loopback", "127.0.0.1"),
    send("to all", "255.255.255.255", device="{uplink}"),
    send("to the login node", "{login}"),
    send("IPv6 loopback", "::1", v6=True),
    send("mapped", "::ffff:{far}", v6=True),
    send("by its own leg", "{far}", device="{attacker_device}"),
    send("by another's leg", "{far}", device="{victim_device}"),
    send("by another's VXLAN", "{far}", device="{victim_vxlan}"),
    send("in fragments", "{far}", size=4000),
    send("in segments", "{far}", repeat=4, segment=82),
]
MARKS = [
    {"name": "mark", "kind": "option", "number": 36, "value": 0x04000000},
    {"name": "priority", "kind": "option", "number": 12, "value": 7},
    {"name": "frames", "kind": "raw", "family": "AF_PACKET", "protocol": 0x0300},
    {"name": "packets", "kind": "raw", "family": "AF_INET", "protocol": 17},
]
_BIND = "touch /tmp/isthmus-test-handle; mount --bind {victim_handle} /tmp/isthmus-test-handle"
NAMESPACES = [
    run("nsenter", "nsenter", "--net={victim_handle}", "true"),
    run("nsenter from a user namespace", "unshare", "-Ur", "nsenter", "--net={victim_handle}", "true"),
    {"name": "setns", "kind": "enter", "path": "{victim_handle}"},
    run("bind mount", "unshare", "-Urm", "sh", "-c", f"{_BIND} && nsenter --net=/tmp/isthmus-test-handle true"),
    run("link", "ip", "link", "set", "{victim_veth}", "down"),
    run("neighbour", "ip", "neigh", "replace", "{victim_pod_near}", "lladdr", "02:00:00:00:00:01", "dev", "lo"),
    run("route", "ip", "route", "replace", "{victim_pod_near}/32", "dev", "{attacker_device}"),
]
POD = [to(kind, f"{whose}_{place}") for kind, whose, place in product(KINDS, ("victim", "other"), PLACES)]
HOSTS_PORTS = [
    *(
        to("tcp", host, port)
        for host, port in product(("controller", "login", "near", "far"), (22, 111, 2049, 2379, 2380, 3306, 8080))
    ),
    *(to("tcp", "attacker_leg_near", port, prefix="own ") for port in (22, 111, 6818, 5000)),
]
METADATA = [
    {"name": "169.254.169.254", "kind": "tcp", "address": "169.254.169.254", "port": 80},
    {"name": "100.100.100.200", "kind": "tcp", "address": "100.100.100.200", "port": 80},
    send("IPv6 link", "ff02::1%eth0", 80, v6=True),
    send("IPv6", "2001:db8::1", 80, v6=True),
]
RIGHTS = [
    run("MAC", "ip", "link", "set", "eth0", "address", "0a:58:0a:40:00:99"),
    run("address", "ip", "address", "add", "{victim_pod_far}/32", "dev", "eth0"),
    run("neighbour", "ip", "neigh", "replace", "{attacker_leg_near}", "lladdr", "02:00:00:00:00:01", "dev", "eth0"),
    run("route", "ip", "route", "replace", "{victim_pod_far}/32", "dev", "eth0"),
    run("link", "ip", "link", "set", "eth0", "down"),
    run("link from a user namespace", "unshare", "-Ur", "ip", "link", "set", "eth0", "down"),
    {"name": "frames of a pod", "kind": "raw", "family": "AF_PACKET", "protocol": 0x0300},
    {"name": "packets of a pod", "kind": "raw", "family": "AF_INET", "protocol": 17},
    *(
        {"name": f"as {who}", "kind": "foreign", "source": f"{{{who}}}", "target": "{attacker_pod_far}", "port": PORT}
        for who in ("attacker_leg_near", "victim_pod_near")
    ),
]
_NAMES = ("{victim_job}.{victim_name}.{domain}", "pod0.{victim_job}.{victim_name}.{domain}", "{victim_job}")
DNS = [
    {"name": f"{name} of {server}", "kind": "dns", "server": f"{{{server}}}", "question": name}
    for server, name in product(("attacker_leg_near", "victim_leg_near", "victim_leg_far"), _NAMES)
] + [{"name": "DNS by TCP", "kind": "tcp", "address": "{victim_leg_near}", "port": 53}]
_OPEN = (("controller", 6817), ("near", 6818), ("far", 6818), ("controller", 5000))
PRIVILEGED = [to("tcp", host, port, source_port=low) for low in (1, 700, 1023) for host, port in _OPEN]
PRIVILEGED_CONTROLS = [to("tcp", host, port, prefix="control ") for host, port in _OPEN]
# API server, etcd, kubelet, controller manager and scheduler: those of a kubeadm cluster, and this one's.
CONTROL_PLANE = [to("tcp", "api", port) for port in (6443, 2379, 2380, 10250, 10256, 10257, 10259)]
SQUATTER = {
    "name": "trap",
    "kind": "listen",
    "address": "{victim_leg_near}",
    "port": 23456,
    "seconds": SQUATTERS_S,
}
TRAPPED = [
    {"name": f"{where} {kind} {port}", "kind": kind, "address": "{victim_leg_near}", "port": port}
    for where, kind, port in product(("near", "far"), ("spoken", "udp"), (23456, 23457))
]
_OWN = [f"{{nobody}}{number:02}" for number in range(31)]
LEGS = [
    *(
        {"name": f"31 addresses by {device}", "kind": "scan", "addresses": _OWN, "port": 9, "device": f"{{{device}}}"}
        for device in ("victim_device", "victim_vxlan")
    ),
    # 10 is AF_INET6; no such packet leaves, though the kernel says nothing.
    {"name": "IPv6 to all", "kind": "scan", "addresses": ["ff02::1%{victim_device}"] * 31, "port": 9, "family": 10},
    *(
        {"name": f"a connection turned to {device}", "kind": "turn"}
        | {"address": "{attacker_pod_far}", "port": PORT, "device": f"{{{device}}}"}
        for device in ("victim_device", "victim_vxlan")
    ),
]
