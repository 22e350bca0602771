"""Monitoring: unique ports, sensible intervals, known receivers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from isthmus.filters.validate.site import Site

PORTS = ("monitoring_port", "monitoring_alertmanager_port", "monitoring_node_port")
# Minimum, maximum, and the reason.
NUMBERS = {
    "monitoring_interval_s": (5, 60, "a host is asked so often, and alerts come after two or three times as long"),
    "monitoring_slurm_interval_s": (5, 600, "slurmctld is asked so often; old figures raise an alert"),
    "monitoring_retention_days": (1, 3650, "figures are kept so long"),
    "monitoring_retention_mib": (128, 1 << 20, "Prometheus writes blocks of some MiB"),
    "monitoring_memory_mib": (256, 1 << 20, "Prometheus needs about 100 MiB for itself"),
}
RECEIVERS, ROUTE = "monitoring_receivers", "monitoring_route"


def monitoring_problems(site: Site) -> Iterator[str]:
    """Yield what is wrong with ports, numbers and receivers."""
    yield from site.port_problems(PORTS)
    yield from _numbers(site)
    yield from _receivers(site)


def _numbers(site: Site) -> Iterator[str]:
    for variable, (least, most, why) in NUMBERS.items():
        value = site.shared(variable)
        if value is not None and (not isinstance(value, int) or not least <= value <= most):
            yield site.problem(f"{variable} is {value!r}", f"write a number from {least} to {most}; {why}", variable)


def _receivers(site: Site) -> Iterator[str]:
    receivers = site.shared_list(RECEIVERS)
    names = [str(each.get("name", "")) for each in receivers if isinstance(each, Mapping)]
    for place, name in enumerate(names):
        if not name or name in names[:place]:
            said = "a receiver without a name" if not name else f"two receivers named {name!r}"
            yield site.problem(f"{RECEIVERS} has {said}", "give each a name of its own", RECEIVERS)
    route = site.shared(ROUTE)
    for name in sorted(_wanted(route)) if isinstance(route, Mapping) else ():
        if name not in names:
            known = ", ".join(names) or "none"
            yield site.problem(f"{ROUTE} names the receiver {name!r}", f"{RECEIVERS} has {known}", ROUTE)


def _wanted(route: Mapping[str, Any]) -> set[str]:
    """Return the receivers that a route and those below it name."""
    below = [each for each in route.get("routes") or () if isinstance(each, Mapping)]
    own = {str(route["receiver"])} if route.get("receiver") else set()
    return own.union(*map(_wanted, below)) if below else own
