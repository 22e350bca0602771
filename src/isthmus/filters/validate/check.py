"""Offline validation: every problem of a site at once, each with its file and its remedy.

The checks read the inventory alone. What only a node knows (its distribution, its real memory, secrets of
a live cluster) is asked by each role's preflight, also before any change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from isthmus.filters.validate.arguments import argument_problems
from isthmus.filters.validate.hosts import host_problems
from isthmus.filters.validate.layers.apptainer import apptainer_problems
from isthmus.filters.validate.layers.artifacts import artifact_problems
from isthmus.filters.validate.layers.etcd import etcd_problems
from isthmus.filters.validate.layers.gateways import gateway_problems
from isthmus.filters.validate.layers.join import join_problems
from isthmus.filters.validate.layers.kubernetes import kubernetes_problems
from isthmus.filters.validate.layers.monitoring import monitoring_problems
from isthmus.filters.validate.layers.network import network_problems
from isthmus.filters.validate.layers.network_rules import network_rule_problems
from isthmus.filters.validate.layers.openstack import openstack_problems
from isthmus.filters.validate.layers.parallelcluster import parallelcluster_problems
from isthmus.filters.validate.layers.registry import registry_problems
from isthmus.filters.validate.layers.setuid import setuid_problems
from isthmus.filters.validate.layers.slurm import slurm_problems
from isthmus.filters.validate.layers.upgrade import upgrade_problems
from isthmus.filters.validate.names import name_problems
from isthmus.filters.validate.shapes import shape_problems
from isthmus.filters.validate.site import Site
from isthmus.filters.validate.sources import Sources
from isthmus.filters.validate.users import user_problems


def cluster_problems(
    hostvars: Mapping[str, Mapping[str, Any]],
    groups: Mapping[str, list[str]],
    role_specs: Mapping[str, Mapping[str, Any]],
    inventory_files: Iterable[str],
) -> list[str]:
    """Return a line `file:line: what is wrong; what to do` per problem.

    Args:
        hostvars: Ansible's `hostvars`; only the variables that a check needs are read.
        groups: Ansible's `groups`.
        role_specs: role -> its parsed meta/argument_specs.yml.
        inventory_files: the inventory sources, and inventories/common.
    """
    site = Site(hostvars, groups, role_specs, Sources(inventory_files))
    # Last, and alone: the checks above give better messages for the same problems.
    return list(dict.fromkeys(_problems(site))) or list(argument_problems(site))


def cluster_role_specs(roles: str) -> dict[str, Any]:
    """Return role -> parsed meta/argument_specs.yml for every role of the folder that has one."""
    files = sorted(Path(roles).glob("*/meta/argument_specs.yml"))
    return {file.parts[-3]: yaml.load(file.read_text(), Loader=yaml.CSafeLoader) or {} for file in files}


def _problems(site: Site) -> Iterator[str]:
    yield from host_problems(site)
    misshaped = list(shape_problems(site))
    yield from misshaped
    if not misshaped:
        yield from name_problems(site)
        yield from user_problems(site)
        yield from slurm_problems(site)
        yield from upgrade_problems(site)
        yield from apptainer_problems(site)
        yield from setuid_problems(site)
        yield from artifact_problems(site)
        yield from _network_problems(site)
        yield from registry_problems(site)
        yield from etcd_problems(site)
        yield from kubernetes_problems(site)
        yield from monitoring_problems(site)
        yield from join_problems(site)
        yield from openstack_problems(site)
        yield from parallelcluster_problems(site)


def _network_problems(site: Site) -> Iterator[str]:
    misfits = list(argument_problems(site, "network"))
    yield from misfits
    if not misfits:
        yield from network_problems(site)
        yield from network_rule_problems(site)
        yield from gateway_problems(site)


FILTERS: dict[str, Callable[..., object]] = {
    "cluster_problems": cluster_problems,
    "cluster_role_specs": cluster_role_specs,
}
