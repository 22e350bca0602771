"""Filters of the drivers for Ansible: each driver's own, and those by which other roles know about drivers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from isthmus.filters.drivers.registry import definitions

POD_RANGE = "network_pod_range"


def network_etcd_users(users: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return etcd_users with those of each driver, chosen or not; a user of that name in the inventory wins.

    A driver that is no longer chosen needs its user to remove what it has in etcd.
    """
    known = {user["name"] for user in users}
    return [*users, *(user for one in definitions().values() for user in one.users if user["name"] not in known)]


def network_cni_lists(drivers: Iterable[str]) -> dict[str, Mapping[str, Any]]:
    """Return the lists of CNI plugins of the cluster's drivers, by name."""
    known = definitions()
    chosen = {driver: known[driver] for driver in drivers if driver in known}
    return {driver: one.cni_list() for driver, one in chosen.items() if one.cni_list}


def network_pod_ranges(defaults: Mapping[str, Any], variables: Mapping[str, Any]) -> list[str]:
    """Return every range that pods may have addresses of, whichever drivers are chosen.

    Args:
        defaults: of role network.
        variables: of a host.
    """
    names = (POD_RANGE, *(name for one in definitions().values() for name in one.ranges))
    given = (variables[name] if name in variables else defaults[name] for name in names)
    # A driver whose range is the site's own has none before the site says it.
    return [str(each) for each in given if each]


FILTERS: dict[str, Callable[..., object]] = {
    **{name: each for one in definitions().values() for name, each in one.filters.items()},
    "network_cni_lists": network_cni_lists,
    "network_etcd_users": network_etcd_users,
    "network_pod_ranges": network_pod_ranges,
}
