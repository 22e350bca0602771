"""Nodes that join by themselves: settings that their image and manifest do not support."""

from __future__ import annotations

from collections.abc import Iterator

from isthmus.filters.errors import InputError
from isthmus.filters.validate.site import Site
from isthmus.model import skew

SERVICE, PORT = "join_service", "join_port"


def join_problems(site: Site) -> Iterator[str]:
    """Yield what is wrong with the service that lets nodes join."""
    port = site.shared(PORT)
    if port is not None and not 1024 <= port <= 65535:
        # The service runs as an unprivileged user.
        yield site.problem_of(InputError(f"{PORT} is {port}", "use a port from 1024 to 65535"), PORT)
    if not site.shared(SERVICE):
        return
    if site.shared("apptainer_setuid"):
        why = f"{SERVICE} is set with apptainer_setuid, whose package is in no image"
        yield site.problem_of(
            InputError(why, "unset one of them; add such nodes with playbooks/add_nodes.yml"), SERVICE
        )
    version = site.shared("slurm_version")
    if isinstance(version, str) and site.shared("slurm_mpi_default") in (None, "pmix") and skew.lacks_pmix(version):
        why = f"{SERVICE} is set with Slurm {version}, whose plugin mpi/pmix is in no image"
        remedy = "unset it, and add such nodes with playbooks/add_nodes.yml, or set slurm_mpi_default: pmi2"
        yield site.problem_of(InputError(why, remedy), SERVICE)
    for host in site.groups.get("compute", []):
        if host in site.groups.get("login", []) + site.groups.get("controller", []) + site.groups.get("etcd", []):
            why = f"{SERVICE} is set and {host} is more than a compute node, as nodes that join are"
            yield site.problem_of(InputError(why, f"unset it, or take {host} out of group compute"), SERVICE)
