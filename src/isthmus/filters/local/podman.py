"""The nodes of a local test bed as containers: which are missing, and how podman starts one.

The options depend on the machine. On hybrid cgroups, or without CAP_SYS_RESOURCE, crun cannot start a
systemd container and no process limit can be raised; runc with the limits of this process can.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from isthmus.filters.errors import InputError
from isthmus.filters.local.subnet import local_mac

CAP_SYS_RESOURCE = 24  # capabilities(7), linux/capability.h
# inotify instances of a node: systemd has eight, D-Bus and others one each (measured).
WATCHERS = 12
# Row of /proc/self/limits -> the most that podman raises it to before it starts the runtime (measured, 4.3).
CEILINGS = {"nofile": ("Max open files", 1 << 20), "nproc": ("Max processes", 1 << 15)}
_UP = ("running", "stopping")


def _may_raise_limits(status: str) -> bool:
    match = re.search(r"^CapEff:\s*([0-9a-f]+)", status, re.MULTILINE)
    return bool(match and int(match[1], 16) >> CAP_SYS_RESOURCE & 1)


def _hard_limit(limits: str, row: str, ceiling: int) -> int:
    match = re.search(rf"^{row}\s+\S+\s+(\d+)", limits, re.MULTILINE)
    return min(int(match[1]), ceiling) if match else ceiling


def local_engine(info: Mapping[str, Any], status: str, limits: str, runtime: str = "auto") -> list[str]:
    """Return the options of `podman run` that this machine needs.

    Args:
        info: `podman info --format json`.
        status: /proc/self/status.
        limits: /proc/self/limits.
        runtime: "auto", or the name of an OCI runtime the admin insists on.

    Returns:
        Arguments for `podman run`; empty where podman's defaults work.
    """
    raises = _may_raise_limits(status)
    plain = info["host"]["cgroupVersion"] == "v2" and raises
    options = ["--runtime", "runc" if runtime == "auto" else runtime]
    if plain and runtime == "auto":
        options = []
    if not raises:
        for name, (row, ceiling) in CEILINGS.items():
            hard = _hard_limit(limits, row, ceiling)
            options += ["--ulimit", f"{name}={hard}:{hard}"]
    return options


def local_plan(
    containers: Sequence[Mapping[str, Any]], cluster: str, nodes: Sequence[str], cgroups: str
) -> dict[str, list[str]]:
    """Return the actions after which every node runs.

    Podman trusts its own files: after a machine was cut off or restored from a snapshot it lists containers as
    running whose processes are gone, and can neither stop nor start them, only remove them.

    Args:
        containers: `podman ps --all --format json` of this test bed.
        cluster: name of the test bed.
        nodes: host names from the inventory.
        cgroups: /proc/<pid>/cgroup of the pids podman gives, concatenated, of those that exist.

    Returns:
        `remove`: container names to remove first; `create`: host names to make a container for; `start`: container
        names that are stopped.
    """
    by_name = {name: container for container in containers for name in container["Names"]}
    mine = {node: by_name.get(f"{cluster}-{node}") for node in nodes}
    dead = {node for node, found in mine.items() if found and found["State"] in _UP and found["Id"] not in cgroups}
    return {
        "remove": [f"{cluster}-{node}" for node in nodes if node in dead],
        "create": [node for node, found in mine.items() if not found or node in dead],
        "start": [f"{cluster}-{node}" for node, found in mine.items() if found and found["State"] not in _UP],
    }


def local_watchers_problem(watchers: Mapping[str, int], nodes: int) -> str:
    """Return why systemd would not start in this many more containers; "" where it would.

    Without an inotify instance it hangs, and the node never answers.

    Args:
        watchers: `used` and `limit` of inotify instances of this account.
        nodes: containers to start.
    """
    needed = watchers["used"] + nodes * WATCHERS
    if not nodes or needed <= watchers["limit"]:
        return ""
    return (
        f"{nodes} more nodes need about {nodes * WATCHERS} inotify instances, and {watchers['used']} of this account's "
        f"{watchers['limit']} are used; run `sysctl fs.inotify.max_user_instances={max(1024, 2 * needed)}`, or tear "
        "down another test bed"
    )


def local_run_command(node: Mapping[str, str], engine: Sequence[str]) -> list[str]:
    """Return the command that starts a node.

    Args:
        node: name, cluster, address (IPv4), image, keys (folder of SSH keys), shm_size.
        engine: the result of `local_engine`.
    """
    container, keys = f"{node['cluster']}-{node['name']}", node["keys"]
    mounts = {
        f"{node['cluster']}-home": "/home",
        f"{keys}/{node['name']}": "/etc/ssh/ssh_host_ed25519_key:ro",
        f"{keys}/{node['name']}.pub": "/etc/ssh/ssh_host_ed25519_key.pub:ro",
        f"{keys}/id_ed25519.pub": "/root/.ssh/authorized_keys:ro",
    }
    network = f"{node['cluster']}:ip={node['address']},mac={local_mac(node['address'])},alias={node['name']}"
    return [
        *("podman", "run", "--detach", "--name", container, "--hostname", node["name"]),
        *("--label", f"isthmus.cluster={node['cluster']}", "--network", network, "--no-hosts"),
        *("--privileged", "--systemd=always", "--stop-timeout", "10", "--shm-size", node["shm_size"]),
        # Twenty pods have more processes and threads than podman's default limit of 2,048.
        *("--pids-limit", "-1"),
        *(word for source, target in mounts.items() for word in ("--volume", f"{source}:{target}")),
        *engine,
        *(node["image"], "/sbin/init"),
    ]


def local_overlaps(routes: Sequence[Mapping[str, Any]], subnet: str) -> list[str]:
    """Return the deployer's routes that overlap `subnet`: `ip -json -4 route` against a CIDR."""
    try:
        wanted = ipaddress.IPv4Network(subnet)
    except ValueError as error:
        raise InputError(f"provider_local_subnet: {error}", "write an IPv4 network such as 10.231.0.0/24") from error
    taken = (str(route["dst"]) for route in routes if route["dst"] != "default")
    return [dst for dst in taken if ipaddress.IPv4Network(dst, strict=False).overlaps(wanted)]


def local_mtu(links: Sequence[Mapping[str, Any]], routes: Sequence[Mapping[str, Any]]) -> int:
    """Return the MTU in bytes of the default route's interface, 1500 without one.

    Larger packets from a node would be dropped where a cloud's network has a smaller MTU than Ethernet.
    """
    device = next((route["dev"] for route in routes if route["dst"] == "default"), None)
    return next((int(link["mtu"]) for link in links if link["ifname"] == device), 1500)


FILTERS: dict[str, Callable[..., object]] = {
    "local_engine": local_engine,
    "local_mtu": local_mtu,
    "local_overlaps": local_overlaps,
    "local_plan": local_plan,
    "local_run_command": local_run_command,
    "local_watchers_problem": local_watchers_problem,
}
