"""The inventory of a site whose nodes a provider creates: a file with the provider, its settings and kinds of nodes.

The cloud is not queried: names, groups and addresses follow from the file, so that `validate` is offline, the first run
has the same inventory as the last, and a server that is gone is one to be created, not one that is unknown.
"""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import IPv4Network
from typing import Any

from isthmus.filters.errors import InputError
from isthmus.filters.parallelcluster import queues
from isthmus.filters.provider.nodes import JOINING, PREFIX, Kind, node_kinds
from isthmus.filters.suggest import check_keys, unknown

PLUGIN = "cluster_nodes"
# Whether the provider lets addresses be chosen, in the subnet that its setting `cidr` names.
PROVIDERS = {"openstack": True, "parallelcluster": False}


def cluster_inventory(source: Mapping[str, Any]) -> dict[str, Any]:
    """Return `hosts` (host -> variables), `groups` (group -> hosts) and `variables` of all.

    Args:
        source: the file: `provider`, `nodes`, and under the provider's name its settings, each of which becomes the
            variable `provider_<name>_<setting>`.

    Raises:
        InputError: for the first thing that is wrong.
    """
    provider = str(source.get("provider", ""))
    if provider not in PROVIDERS:
        raise unknown("provider", provider, PROVIDERS)
    check_keys("the inventory", source, ("plugin", "provider", "nodes", provider), ("nodes",))
    settings = source.get(provider) or {}
    for key in ("nodes", provider):
        if not isinstance(source.get(key) or {}, Mapping):
            raise InputError(f"{key} is {source[key]!r}", f"write its settings below {key}:")
    kinds = node_kinds(source["nodes"])
    cloud = [kind.name for kind in kinds if kind.cloud]
    if cloud and not PROVIDERS[provider]:
        raise InputError(f"nodes.{cloud[0]}.cloud is for OpenStack", f"give counts under {provider}.kinds instead")
    network = _network(settings) if PROVIDERS[provider] else None
    coming = queues.kinds(source["nodes"], settings.get("kinds") or {}) if provider == "parallelcluster" else {}
    placed = [kind for kind in kinds if kind.name not in coming]
    hosts = {node: variables for kind in placed for node, variables in _hosts(kind, network)}
    groups: dict[str, list[str]] = {}
    for kind in placed:
        for group in kind.groups:
            groups.setdefault(group, []).extend(kind.nodes)
    for name, machine in coming.items():
        names = queues.node_names(name, machine)
        hosts |= {node: dict(source["nodes"][name].get("vars") or {}) for node in names}
        groups.setdefault(JOINING, []).extend(names)
        groups.setdefault(name, []).extend(names)
    groups[f"{PREFIX}{provider}"] = list(hosts)
    variables = {f"{PREFIX}{provider}_{key}": value for key, value in settings.items()}
    variables |= {"slurm_cloud_nodes": cloud} if cloud else {}
    return {"hosts": hosts, "groups": groups, "variables": {"cluster_nodes": source["nodes"], **variables}}


def _hosts(kind: Kind, network: IPv4Network | None) -> list[tuple[str, dict[str, Any]]]:
    if network is None:
        return [(node, dict(kind.variables)) for node in kind.nodes]
    return [(node, {"ansible_host": where, **kind.variables}) for node, where in kind.addresses(network).items()]


def _network(settings: Mapping[str, Any]) -> IPv4Network:
    given = settings.get("cidr", "")
    try:
        return IPv4Network(str(given))
    except ValueError as error:
        raise InputError(f"cidr is {given!r}, no IPv4 network", "write one such as 10.20.0.0/24") from error
