"""A site on ParallelCluster: checks of its variables alone, before ParallelCluster is installed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from isthmus.filters.parallelcluster.problems import PREFIX, problems
from isthmus.filters.validate.arguments import argument_problems
from isthmus.filters.validate.site import Site

ROLE = "provider_parallelcluster"
_BATCH = [{"name": "batch", "nodes": ["compute"], "default": True}]


def parallelcluster_problems(site: Site) -> Iterator[str]:
    """Yield what is wrong with a site whose nodes ParallelCluster makes."""
    if not site.group(ROLE):
        return
    misfits = list(argument_problems(site, ROLE))
    yield from misfits
    if not misfits:
        for problem in problems(_variables(site)):
            yield site.problem_of(problem.error, *problem.keys)


def _variables(site: Site) -> dict[str, Any]:
    options = site.role_specs[ROLE]["argument_specs"]["main"]["options"]
    given = {name: site.shared(name) for name in options}
    own = {
        name.removeprefix(PREFIX): options[name]["default"] if value is None else value for name, value in given.items()
    }
    managed = site.shared("slurm_manage")
    return {
        **own,
        "cluster": site.shared("cluster_name"),
        "managed": True if managed is None else managed,
        "nodes": site.shared("cluster_nodes") or {},
        "partitions": site.shared_list("slurm_partitions") or _BATCH,
        "slurm": site.shared("slurm_conf_extra") or {},
    }
