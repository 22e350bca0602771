"""Users' clusters: a range of Services that others use, a job too small for its programs, unknown partitions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from ipaddress import AddressValueError, IPv4Address, IPv4Network, NetmaskValueError
from pathlib import PurePosixPath
from typing import Any

from isthmus.filters.drivers.registry import declared, of_site
from isthmus.filters.errors import InputError
from isthmus.filters.slurm.time_limits import time_minutes
from isthmus.filters.suggest import unknown
from isthmus.filters.validate.site import Site
from isthmus.model.network import Driver, Promise

RANGE = "kubernetes_service_range"
PARTITION = "kubernetes_partition"
TIME = "kubernetes_time"
MEMORY = "kubernetes_memory_mib"
HANDOVER = "kubernetes_handover_s"
DATA_DIR = "kubernetes_data_dir"
SNAPSHOT = "kubernetes_snapshot_s"
KEPT = "kubernetes_kept"
VERSIONS = "kubernetes_versions"
IMAGES = ("kubernetes_image_days", "kubernetes_image_gib")
PORTS = ("kubernetes_jobs_port", "kubernetes_jobs_metrics_port")
JOIN_PORT = "join_port"
# The API server: "service-cluster-ip-range" must not be larger.
PREFIX_MIN, PREFIX_MAX = 12, 28
# The four programs and the kubelet, idle.
MEMORY_MIN = 768
# With less, Slurm may kill the programs before their orderly end.
HANDOVER_MIN = 60
# A snapshot is the whole database.
SNAPSHOT_MIN = 5
_HOMES = PurePosixPath("/home")
DRIVER = "kubernetes_driver"
# Services can do without addresses (headless), pods and their control plane not without one another.
_NEEDED = (Promise.NAMES, Promise.BETWEEN_NODES)


def kubernetes_problems(site: Site) -> Iterator[str]:
    """Yield what is wrong with the variables of users' clusters."""
    yield from _driver(site)
    yield from _range(site)
    yield from _partition(site)
    yield from _data_dir(site)
    yield from _ports(site)
    yield from _versions(site)
    for variable, least, why in (
        (MEMORY, MEMORY_MIN, "the programs alone need that much"),
        (HANDOVER, HANDOVER_MIN, "the programs need that long to end in order"),
        (SNAPSHOT, SNAPSHOT_MIN, "each snapshot is written to the home as a whole"),
        (KEPT, 0, "0 means the present one alone"),
        *((variable, 0, "0 means no limit") for variable in IMAGES),
    ):
        value = site.shared(variable)
        if isinstance(value, int) and value < least:
            yield site.problem(f"{variable} {value} is below {least}", f"{why}; raise it", variable)


def _driver(site: Site) -> Iterator[str]:
    given = site.shared(DRIVER)
    if given not in set(Driver):
        return
    if lacking := Driver(given).lacks(_NEEDED):
        able = [str(driver) for driver in Driver if not driver.lacks(_NEEDED)]
        yield site.problem(
            f"{DRIVER} {given} does not promise what users' clusters need: {', '.join(lacking)}",
            f"use {Driver.PRIVATE}, or another of {', '.join(able)}; jobs may still ask for {given}",
            DRIVER,
        )


def _versions(site: Site) -> Iterator[str]:
    versions = site.shared(VERSIONS)
    for version in versions if isinstance(versions, list) else ():
        if not re.fullmatch(r"\d+\.\d+\.\d+", str(version)):
            yield site.problem(f"{VERSIONS} has {version!r}", "write whole versions, such as 1.36.3", VERSIONS)


def _ports(site: Site) -> Iterator[str]:
    """Yield invalid ports: an unprivileged user listens there; 0 disables the metrics port."""
    declared = {name: site.shared(name) for name in (*PORTS, JOIN_PORT)}
    for name in PORTS:
        port = declared[name]
        if not isinstance(port, int) or (name == PORTS[1] and port == 0):
            continue
        if not 1024 <= port <= 65535:
            yield site.problem(f"{name} is {port}", "use a port from 1024 to 65535", name)
        if others := [other for other, value in declared.items() if other != name and value == port]:
            yield site.problem(f"{name} is {port}, as {others[0]} is", "use another port", name)


def _range(site: Site) -> Iterator[str]:
    given = site.shared(RANGE)
    if given is None and site.group("kubernetes"):
        given = site.default("kubernetes", RANGE)
    if given is None:
        return
    services = _network(given)
    if services is None or not PREFIX_MIN <= services.prefixlen <= PREFIX_MAX:
        remedy = f"write it as 10.96.0.0/16, with a prefix from {PREFIX_MIN} to {PREFIX_MAX}"
        yield site.problem(f"{RANGE} {given} is no range for Services", remedy, RANGE)
        return
    ranges = [each for driver in of_site(site).values() for each in driver.ranges]
    for variable in ("network_pod_range", *ranges):
        pods = _network(declared(site, variable))
        if pods is not None and pods.overlaps(services):
            yield site.problem(f"{RANGE} {services} overlaps {variable} {pods}", "choose one apart from it", RANGE)
    for host in site.hosts:
        address = _address(site.read(host, "base_address"))
        if address is not None and address in services:
            yield site.problem(f"{RANGE} {services} contains {host} ({address})", "choose one without hosts", RANGE)


def _partition(site: Site) -> Iterator[str]:
    wanted = site.shared(PARTITION)
    known = {str(each["name"]): each for each in site.shared_list("slurm_partitions") if "name" in each}
    if wanted and known and wanted not in known:
        error = unknown(f"partition in {PARTITION}", str(wanted), list(known))
        yield site.problem(error.problem, error.remedy, PARTITION)
        return
    usual = next((each for each in known.values() if each.get("default")), {})
    yield from _time(site, known.get(str(wanted), usual))


def _data_dir(site: Site) -> Iterator[str]:
    declared = site.shared(DATA_DIR)
    if declared is None:
        return
    folder = PurePosixPath(str(declared))
    if not folder.is_absolute() or ".." in folder.parts:
        yield site.problem(f"{DATA_DIR} {declared} is no whole path", "write it as /var/tmp", DATA_DIR)
    elif folder.is_relative_to(_HOMES):
        yield site.problem(f"{DATA_DIR} {declared} is on the homes", "name a folder of each node's own disk", DATA_DIR)


def _time(site: Site, partition: Mapping[str, Any]) -> Iterator[str]:
    """Yield a time limit above the partition's: Slurm accepts such a job, and never starts it."""
    wanted, most = site.shared(TIME), partition.get("max_time")
    if not wanted or most is None:
        return
    try:
        asked, limit = time_minutes(TIME, wanted), time_minutes("max_time", most)
    except InputError as error:
        yield site.problem_of(error, TIME)
        return
    if limit is not None and (asked is None or asked > limit):
        what = f"{TIME} {wanted} is above max_time {most} of partition {partition['name']}"
        yield site.problem(what, f"lower it, or choose another {PARTITION}", TIME)


def _network(declared: object) -> IPv4Network | None:
    try:
        return IPv4Network(str(declared))
    except (AddressValueError, NetmaskValueError, ValueError):
        return None


def _address(declared: object) -> IPv4Address | None:
    try:
        return IPv4Address(str(declared))
    except (AddressValueError, ValueError):
        return None
