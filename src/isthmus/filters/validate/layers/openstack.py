"""Settings of the provider openstack that no cloud would take; what a cloud has is asked by playbooks/create.yml."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from isthmus.filters.errors import InputError
from isthmus.filters.provider.openstack import read
from isthmus.filters.validate.site import Site

ROLE = "provider_openstack"
RANGES = ("network_pod_range", "network_flannel_range")


def openstack_problems(site: Site) -> Iterator[str]:
    """Yield the first thing that is wrong, where OpenStack makes the nodes."""
    if not site.group(ROLE):
        return
    main = (site.role_specs.get(ROLE, {}).get("argument_specs") or {}).get("main") or {}
    given = {
        name.removeprefix(f"{ROLE}_"): _value(site, name, option)
        for name, option in (main.get("options") or {}).items()
    }
    nodes = site.shared("cluster_nodes")
    if nodes is None:
        yield site.problem(
            f"group {ROLE} has hosts, and no kinds of nodes",
            "write the inventory as inventories/openstack.example does",
            ROLE,
        )
        return
    ranges = [one for one in map(site.shared, RANGES) if one]
    more = {"cluster": site.shared("cluster_name"), "nodes": nodes, "pod_ranges": ranges}
    try:
        read({**given, **more, "spread": [], "image_digest": "", "public_key": ""})
    except InputError as error:
        yield site.problem_of(error, error.problem.split()[0].split(".")[0], "machines", ROLE)


def _value(site: Site, name: str, option: dict[str, Any]) -> Any:
    value = site.shared(name)
    return option.get("default") if value is None else value
