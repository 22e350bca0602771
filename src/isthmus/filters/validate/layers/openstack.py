"""Settings of provider openstack that no cloud accepts; playbooks/create.yml checks them against the cloud's offer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from isthmus.filters.drivers.registry import definitions
from isthmus.filters.errors import InputError
from isthmus.filters.provider.openstack import read
from isthmus.filters.validate.site import Site

ROLE = "provider_openstack"


def openstack_problems(site: Site) -> Iterator[str]:
    """Yield the first problem, where OpenStack makes the nodes."""
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
    variables = ("network_pod_range", *(name for driver in definitions().values() for name in driver.ranges))
    ranges = [one for name in variables if (one := site.shared(name) or site.default("network", name))]
    more = {"cluster": site.shared("cluster_name"), "nodes": nodes, "pod_ranges": ranges}
    if site.shared("slurm_cloud_nodes") and not given.get("power_clouds"):
        yield site.problem(
            "nodes come and go with jobs, and the controller has no credentials",
            "set power_clouds (provider_openstack_power_clouds) to a clouds.yaml for it",
            "power_clouds",
            ROLE,
        )
    try:
        read({**given, **more, "spread": [], "image_digest": "", "public_key": ""})
    except InputError as error:
        yield site.problem_of(error, error.problem.split()[0].split(".")[0], "machines", ROLE)


def _value(site: Site, name: str, option: dict[str, Any]) -> Any:
    value = site.shared(name)
    return option.get("default") if value is None else value
