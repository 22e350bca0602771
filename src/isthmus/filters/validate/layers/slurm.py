"""Slurm: partitions, times and memory, as far as the inventory alone shows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from ClusterShell.NodeSet import NodeSetException

from isthmus.filters.errors import InputError
from isthmus.filters.slurm.choices import slurm_health, slurm_priority, slurm_purge, slurm_site_files
from isthmus.filters.slurm.gres import slurm_gres
from isthmus.filters.slurm.nodes import slurm_expand, slurm_hardware
from isthmus.filters.slurm.partitions import slurm_partitions
from isthmus.filters.slurm.power import slurm_cloud, slurm_power
from isthmus.filters.slurm.record import slurm_declared
from isthmus.filters.slurm.time_limits import time_minutes
from isthmus.filters.validate.site import Site

# Defaults of jobs; a job of the whole node, or of one CPU, must fit.
_MEMORY_KEYS = ("defmempernode", "defmempercpu")
_TIME_KEYS = ("maxtime", "defaulttime", "maxwall", "grpwall")
# Valid values, with which another is checked.
_HEALTH: Mapping[str, Any] = {"program": "/bin/true", "interval_s": 300}
_POWER = {
    "suspend_time_s": 600,
    "suspend_timeout_s": 120,
    "resume_timeout_s": 600,
    "resume_rate": 60,
    "suspend_rate": 60,
}
_LIMITED = ("slurm_accounts", "slurm_qos", "slurm_users")


def slurm_problems(site: Site) -> Iterator[str]:
    """Yield what is wrong with nodes, partitions and limits."""
    yield from _choices(site)
    yield from _power(site)
    yield from _health(site)
    yield from _nodes(site)
    yield from _gres(site)
    # ParallelCluster's partitions are queues, whose nodes the inventory knows by name alone.
    if not site.group("provider_parallelcluster"):
        yield from _partitions(site)
    yield from _default_memory(site)
    yield from _times(site)
    if isinstance(most := site.shared("slurm_user_jobs_max"), int) and most < 0:
        remedy = "give a whole number, or 0 to leave what is set"
        yield site.problem(f"slurm_user_jobs_max is {most}", remedy, "slurm_user_jobs_max")


def _choices(site: Site) -> Iterator[str]:
    checks: dict[str, Callable[[Mapping[str, Any]], object]] = {
        "slurm_conf_files": lambda files: slurm_site_files(files, everywhere=True),
        "slurm_dbd_purge_after": slurm_purge,
        "slurm_priority_weights": slurm_priority,
    }
    for variable, check in checks.items():
        for name, value in (site.shared(variable) or {}).items():
            try:
                check({name: value})
            except InputError as error:
                yield site.problem_of(error, name, variable)


def _health(site: Site) -> Iterator[str]:
    for name in _HEALTH:
        value = site.shared(f"slurm_health_{name}")
        if value is not None:
            try:
                slurm_health(**{**_HEALTH, name: value})
            except InputError as error:
                yield site.problem_of(error, f"slurm_health_{name}")


def _power(site: Site) -> Iterator[str]:
    for name, value in _POWER.items():
        given = site.shared(f"slurm_cloud_{name}")
        try:
            slurm_power([], [], "", {name: value if given is None else given})
        except InputError as error:
            yield site.problem_of(error, f"slurm_cloud_{name}")
    try:
        cloud = slurm_cloud(_items(site), site.groups, site.group("joining"))
    except InputError as error:
        yield site.problem_of(error, "slurm_cloud_nodes")
        return
    except NodeSetException as error:
        yield site.problem(
            f"slurm_cloud_nodes: {error}", "write e.g. burst[1-4], a host or a group", "slurm_cloud_nodes"
        )
        return
    for host in cloud:
        if not slurm_declared(_declared(site, host)):
            what = f"host {host} is of slurm_cloud_nodes and nobody can ask it for its hardware"
            yield site.problem(what, "declare its slurm_node (cpus, memory_mib)", host)
    if cloud and not site.group("provider_openstack"):
        what = "slurm_cloud_nodes has nodes, and no provider here starts servers for Slurm"
        yield site.problem(what, "empty it, or let OpenStack make the nodes", "slurm_cloud_nodes")
    if cloud and not site.shared("join_service"):
        what = "slurm_cloud_nodes has nodes, and join_service is off"
        yield site.problem(what, "set join_service: true, by which they join", "join_service", "slurm_cloud_nodes")


def _items(site: Site) -> list[str]:
    value = site.shared("slurm_cloud_nodes")
    return [str(item) for item in value] if isinstance(value, list) else []


def _cloud(site: Site) -> list[str]:
    try:
        return slurm_cloud(_items(site), site.groups, site.group("joining"))
    except (InputError, NodeSetException):  # _power has it
        return []


def _nodes(site: Site) -> Iterator[str]:
    for host in [*site.group("compute"), *_cloud(site)]:
        declared = _declared(site, host)
        if {"cpus", "memory_mib"} <= set(declared):
            try:
                slurm_hardware({}, declared)
            except InputError as error:
                yield site.problem(f"host {host}: {error.problem}", error.remedy, "slurm_node")


def _gres(site: Site) -> Iterator[str]:
    said = site.shared_list("slurm_gres_conf")
    try:
        slurm_gres([], said)
    except InputError as error:
        yield site.problem_of(error, "slurm_gres_conf")
        return
    for host in site.group("compute"):
        try:
            slurm_gres([{"name": host, **_declared(site, host)}], said)
        except InputError as error:
            yield site.problem(f"host {host}: {error.problem}", error.remedy, "slurm_node")


def _partitions(site: Site) -> Iterator[str]:
    partitions = site.shared_list("slurm_partitions")
    each_is_right = True
    for partition in partitions:
        if error := _refusal(site, [partition]):
            each_is_right = False
            yield site.problem_of(error, "name", "slurm_partitions", value=partition.get("name"))
    if each_is_right and (error := _refusal(site, partitions)):
        yield site.problem_of(error, "slurm_partitions")


def _refusal(site: Site, partitions: list[dict[str, Any]]) -> InputError | None:
    try:
        cloud = _cloud(site)
        slurm_partitions(partitions, site.groups, [*site.group("compute"), *cloud], cloud)
    except InputError as error:
        return error
    except NodeSetException as error:
        return InputError(f"nodes of a partition: {error}", "write e.g. c[1-4], a host or a group")
    return None


def _default_memory(site: Site) -> Iterator[str]:
    compute = site.group("compute")
    extra = site.shared("slurm_conf_extra")
    if isinstance(extra, Mapping):
        yield from _memory(site, "slurm_conf_extra", extra, compute)
    for partition in site.shared_list("slurm_partitions"):
        options = partition.get("options") or {}
        nodes = [host for host in _hosts(site, partition) if host in compute]
        yield from _memory(site, f"partition {partition.get('name')}", options, nodes)


def _memory(site: Site, where: str, settings: Mapping[str, Any], nodes: list[str]) -> Iterator[str]:
    for key, value in settings.items():
        if key.lower() not in _MEMORY_KEYS or not str(value).isdecimal():
            continue
        for host in nodes:
            memory = _declared(site, host).get("memory_mib")
            if isinstance(memory, int) and int(value) > memory:
                what = f"{key} of {where} is {value} MiB, but node {host} has {memory}"
                yield site.problem(what, "lower it, or raise slurm_node.memory_mib", key, value=value)
                break


def _times(site: Site) -> Iterator[str]:
    for partition in site.shared_list("slurm_partitions"):
        where = f"partition {partition.get('name')}"
        yield from _time(site, where, partition.get("options") or {})
    for variable in _LIMITED:
        for item in site.shared_list(variable):
            yield from _time(site, f"{variable}, {item.get('name')}", item.get("limits") or {})


def _time(site: Site, where: str, settings: Mapping[str, Any]) -> Iterator[str]:
    for key, value in settings.items():
        if key.lower() in _TIME_KEYS:
            try:
                time_minutes(f"{key} of {where}", value)
            except InputError as error:
                yield site.problem_of(error, key, value=value)


def _hosts(site: Site, partition: Mapping[str, Any]) -> Iterator[str]:
    nodes = partition.get("nodes")
    for name in nodes if isinstance(nodes, list) else ():
        if name in site.groups:
            yield from site.group(name)
        else:
            with suppress(NodeSetException):  # reported by _partitions
                yield from slurm_expand(str(name))


def _declared(site: Site, host: str) -> dict[str, Any]:
    value = site.read(host, "slurm_node")
    return value if isinstance(value, dict) else {}
