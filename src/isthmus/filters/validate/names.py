"""Unknown names: a misspelt group or variable would otherwise be ignored silently."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any

from isthmus.filters.suggest import unknown
from isthmus.filters.validate.site import Site

LAYERS = ("base", "slurm", "apptainer", "network", "kubernetes", "workloads", "bench", "monitoring")
HOST_GROUPS = ("controller", "login", "compute", "joining", "gateways", "etcd")
ANSIBLE_GROUPS = ("all", "ungrouped")
SITE_GROUPS = "base_site_groups"
_WHERE_KNOWN = "the known ones stand in inventories/common and in each role's meta/argument_specs.yml"

# Variables of an earlier release, and what to do about each in an inventory from then.
_RENAMED = {
    "provider_local_packages": "it is image_packages now",
    "provider_local_packages_extra": "it is image_packages_extra now",
    "provider_local_suite": "it is image_suite now",
    "registry_push_address": "remove it: images are pushed to registry_address now",
}


def name_problems(site: Site) -> Iterator[str]:
    """Yield unknown groups and variables, with the name that was probably meant."""
    yield from _groups(site)
    yield from _files(site)
    yield from _variables(site)


def _groups(site: Site) -> Iterator[str]:
    providers = {role for role in site.role_specs if role.startswith("provider_")}
    ours = {*HOST_GROUPS, *LAYERS, *providers}
    known = {*ours, *ANSIBLE_GROUPS, *(site.shared(SITE_GROUPS) or ()), *_partition_groups(site), *_kinds(site)}
    for group in sorted(set(site.groups) - known):
        error = unknown("group", group, ours)
        yield site.problem(error.problem, f"{error.remedy}; a group of your own goes into {SITE_GROUPS}", group)


def _files(site: Site) -> Iterator[str]:
    # Ansible silently ignores a file of variables of an unknown host or group.
    for folder, names in (("group_vars", [*site.groups, *ANSIBLE_GROUPS]), ("host_vars", site.hosts)):
        for owner, file in site.sources.owners(folder):
            if owner not in names:
                error = unknown("group or host with a file of variables", owner, names)
                yield f"{file}: {error}"


def _kinds(site: Site) -> set[str]:
    kinds = site.shared("cluster_nodes")
    return {*kinds} if isinstance(kinds, dict) else set()


def _partition_groups(site: Site) -> set[str]:
    partitions = site.shared_list("slurm_partitions")
    return {
        str(node) for partition in partitions if isinstance(nodes := partition.get("nodes"), list) for node in nodes
    }


def _variables(site: Site) -> Iterator[str]:
    known = {SITE_GROUPS, *_arguments(site.role_specs), *site.sources.documented()}
    # Variables with a role's prefix are Isthmus's; others belong to the site.
    prefixes = ("cluster_", *(f"{role}_" for role in site.role_specs))
    used = {name for host in site.hosts for name in site.names(host) if name.startswith(prefixes)}
    for name in sorted(used - known):
        # A variable that another value of the inventory uses belongs to the site.
        if not site.sources.reads(name):
            yield site.problem(f"unknown variable: {name!r}", _meant(name, known), name)


def _meant(name: str, known: set[str]) -> str:
    if name in _RENAMED:
        return f"{_RENAMED[name]}; {_WHERE_KNOWN}"
    return "".join(f"did you mean {near!r}? " for near in get_close_matches(name, known, n=1)) + _WHERE_KNOWN


def _arguments(role_specs: Mapping[str, Mapping[str, Any]]) -> set[str]:
    return {
        option
        for spec in role_specs.values()
        for entry in (spec.get("argument_specs") or {}).values()
        for option in entry.get("options") or {}
    }
