"""Pod networks: values that types do not restrict, and ranges that overlap with other networks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from ipaddress import IPv4Network
from typing import Any

from isthmus.filters.validate.site import Site

RANGE = "network_pod_range"
# RFC 6890: this host, loopback, link-local; RFC 1112 and what is above: never addresses of hosts.
_NOBODYS = tuple(map(IPv4Network, ("0.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "224.0.0.0/3")))
_DOMAIN = re.compile(r"(?!.*\.$)([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.|$))+")
_PORTS = re.compile(r"(\d+)(?:-(\d+))?")
# What pods must not reach on hosts, as they trust the client's host, or is the cluster's own.
_FILE_SERVER = "serves files to every host of the cluster"
_FORBIDDEN = {
    111: "publishes where file servers listen",
    513: "trusts the client's host",
    514: "trusts the client's host",
    515: "trusts the client's host",
    988: f"is Lustre's, which {_FILE_SERVER}",
    2049: f"is NFS's, which {_FILE_SERVER}",
    2379: "is etcd's",
    2380: "is etcd's",
    4789: "is VXLAN's, the way between pods",
    8472: "is VXLAN's, the way between pods",
    20048: f"is NFS's (mountd), which {_FILE_SERVER}",
    24007: f"is GlusterFS's, which {_FILE_SERVER}",
}
_BOUNDS = {
    "network_connections_max": 64,
    "network_connections_rate": 1,
    "network_conntrack_max": 1024,
    "network_dns_rate": 100,
}
# RFC 5382, REQ-5: a connection that is idle for two hours and four minutes must be kept.
_ESTABLISHED_MIN_S = 7440
# The plugin's own limit (src/spank/settings.c).
_START_MAX_S = 600
# Twenty looks of the controller's, and a beat of each node's in ten seconds.
_TTL_MIN_S = 60
# Variables that are a range of ports, and an example.
_LOGIN_PORTS = "network_login_ports"
_RANGES = {"network_srun_ports": "60001-63000", "network_slurm_ports": "6817-6819", _LOGIN_PORTS: "20000-59999"}
# An srun listens on some, and the pod's other connections start from the rest; the kernel needs two at least.
_LOGIN_EACH_MIN = 16


def network_rule_problems(site: Site) -> Iterator[str]:
    """Yield what is wrong with ranges that overlap, ports, names and times; their types are right."""
    yield from _overlaps(site)
    yield from _ports(site)
    yield from _forbidden(site)
    yield from _bounds(site)
    yield from _domains(site)
    yield from _times(site)
    yield from _logins(site)


def _overlaps(site: Site) -> Iterator[str]:
    pods = _network(site.shared(RANGE))
    if pods is None:
        return
    networks: list[tuple[str, str, IPv4Network]] = [("", "addresses of no host", each) for each in _NOBODYS]
    if site.group("provider_local") and (local := _network(site.shared("provider_local_subnet"))):
        networks.append(("provider_local_subnet", "provider_local_subnet", local))
    servers = map(_network, site.shared("network_dns_upstreams") or ())
    networks += [("network_dns_upstreams", "network_dns_upstreams", server) for server in servers if server]
    networks += [("apptainer_networks", f"apptainer_networks of {host}", each) for host, each in _apptainer(site)]
    for variable, what, network in networks:
        if pods.overlaps(network):
            yield site.problem(
                f"{RANGE} {pods} overlaps {network} ({what})",
                "choose a range that nothing else uses",
                RANGE,
                *filter(None, [variable]),
            )


def _apptainer(site: Site) -> Iterator[tuple[str, IPv4Network]]:
    for host in site.group("apptainer") if site.shared("apptainer_setuid") else ():
        networks = site.read(host, "apptainer_networks")
        for plugins in networks.values() if isinstance(networks, dict) else ():
            for plugin in plugins if isinstance(plugins, list) else ():
                if isinstance(plugin, dict) and (subnet := _network((plugin.get("ipam") or {}).get("subnet"))):
                    yield host, subnet


def _ports(site: Site) -> Iterator[str]:
    given: list[tuple[str, Any]] = [
        ("network_host_ports", each.get("port")) for each in site.shared_list("network_host_ports")
    ]
    for rule in site.shared_list("network_egress"):
        given += [("network_egress", port) for port in rule.get("ports") or ()]
    given += [("network_login_host_ports", port) for port in site.shared("network_login_host_ports") or ()]
    given += [(name, site.shared(name)) for name in _RANGES if site.shared(name)]
    for variable, declared in given:
        found = _PORTS.fullmatch(str(declared))
        first, last = (int(found[1]), int(found[2] or found[1])) if found else (0, 0)
        if not 1 <= first <= last <= 65535 or (found and found[2] and variable not in _RANGES):
            form = _RANGES.get(variable, "one from 1 to 65535")
            yield site.problem(f"{variable} has port {declared}", f"write {form}", variable)


def _forbidden(site: Site) -> Iterator[str]:
    for each in site.shared_list("network_host_ports"):
        port = str(each.get("port"))
        if port.isdecimal() and int(port) in _FORBIDDEN:
            yield site.problem(
                f"network_host_ports has port {port}, which {_FORBIDDEN[int(port)]}; every user is root in pods",
                "take it out: pods get files as volumes, by the node's own mounts",
                "port",
                "network_host_ports",
                value=each.get("port"),
            )


def _bounds(site: Site) -> Iterator[str]:
    for variable, least in {**_BOUNDS, "network_conntrack_established_s": _ESTABLISHED_MIN_S}.items():
        declared = site.shared(variable)
        if declared is not None and not least <= int(declared) < 2**31:
            yield site.problem(f"{variable} is {declared}", f"write {least} or more", variable)


def _domains(site: Site) -> Iterator[str]:
    given = [("network_domain", site.shared("network_domain"))]
    given += [("network_search_domains", each) for each in site.shared("network_search_domains") or ()]
    for variable, declared in given:
        if declared is not None and not _DOMAIN.fullmatch(str(declared)):
            yield site.problem(
                f"{variable}: {declared!r} is no domain", "write labels of a-z, 0-9 and '-', joined by dots", variable
            )


def _times(site: Site) -> Iterator[str]:
    for variable, last in (("network_start_timeout_s", _START_MAX_S), ("network_lease_idle_s", 10**9)):
        declared = site.shared(variable)
        if declared is not None and not 1 <= int(declared) <= last:
            yield site.problem(f"{variable} is {declared}", f"write seconds from 1 to {last}", variable)
    ttl_s = site.shared("network_lease_ttl_s")
    if ttl_s is not None and int(ttl_s) != 0 and not _TTL_MIN_S <= int(ttl_s) <= 10**9:
        remedy = f"write seconds from {_TTL_MIN_S} to {10**9}, or 0 for never"
        yield site.problem(f"network_lease_ttl_s is {ttl_s}", remedy, "network_lease_ttl_s")


def _network(declared: object) -> IPv4Network | None:
    try:
        return IPv4Network(str(declared))
    except ValueError:
        return None


def _logins(site: Site) -> Iterator[str]:
    if not site.shared("network_login_pods"):
        return
    if site.shared("network_srun_ports") or "SrunPortRange" in (site.shared("slurm_conf_extra") or {}):
        yield site.problem(
            "network_login_pods is set, and Slurm has an SrunPortRange: Slurm could not call srun in a login pod",
            f"leave out network_srun_ports and SrunPortRange; srun's ports are those of {_LOGIN_PORTS}",
            "network_login_pods",
        )
    first, last = _span(site.shared(_LOGIN_PORTS)) or (20000, 59999)
    slurm = _span(site.shared("network_slurm_ports")) or (6817, 6819)
    if first < 1024 or (first <= slurm[1] and slurm[0] <= last):
        yield site.problem(
            f"{_LOGIN_PORTS} {first}-{last} has ports that daemons listen on",
            "choose ports above 1023 that nothing else has",
            _LOGIN_PORTS,
        )
    bounds = {
        "network_login_ports_each": (_LOGIN_EACH_MIN, last - first + 1),
        "network_login_tmp_mib": (1, 2**20),
        "network_login_linger_s": (0, 86400),
        "network_login_memory_mib": (0, 2**31),
        "network_login_tasks_max": (0, 2**31),
    }
    for variable, (least, most) in bounds.items():
        declared = site.shared(variable)
        if declared is not None and not least <= int(declared) <= most:
            yield site.problem(f"{variable} is {declared}", f"write {least} to {most}", variable)


def _span(declared: object) -> tuple[int, int] | None:
    found = _PORTS.fullmatch(str(declared))
    return (int(found[1]), int(found[2] or found[1])) if found else None
