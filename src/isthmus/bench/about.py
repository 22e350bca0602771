"""The origin of figures: the machine, versions of programs, settings of Open MPI."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from isthmus.bench.plan import Plain
from isthmus.clients.process import ProcessError, run

OPENMPI = Path("/etc/openmpi/openmpi-mca-params.conf")
_PROGRAMS: Mapping[str, Sequence[str]] = {
    "slurm": ["sinfo", "--version"],
    "apptainer": ["apptainer", "--version"],
    "openmpi": ["mpirun.openmpi", "--version"],
}
_VERSION = re.compile(r"\d+(?:\.\d+)+\S*")


def machine() -> dict[str, object]:
    """Describe this machine by its hardware, not by its name."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_mib": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20,
        "kernel": platform.release(),
        "load": os.getloadavg()[0],
    }


def versions() -> dict[str, str]:
    """Return program -> version, of those that are installed."""
    found = {"isthmus": version("isthmus")}
    for name, argv in _PROGRAMS.items():
        try:
            match = _VERSION.search(run(argv, timeout_s=10).stdout)
        except ProcessError:
            continue
        if match:
            found[name] = match[0]
    return found


def mpi_settings(path: Path = OPENMPI) -> dict[str, str]:
    """Return the host's settings of Open MPI as environment variables, as containers do not see its file."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    pairs = (line.partition("#")[0].partition("=") for line in lines)
    return {f"OMPI_MCA_{name.strip()}": value.strip() for name, equal, value in pairs if equal}


def whole(
    cluster: str, nodes: Mapping[str, Any], settings: Mapping[str, str], image: str, plain: Plain | None = None
) -> dict[str, Any]:
    """Return the context of a document of results."""
    return {
        "cluster": cluster,
        "nodes": dict(nodes),
        "machine": machine(),
        "versions": versions(),
        "openmpi_settings": dict(settings),
        "image": image,
        **({"plain": beside(plain)} if plain else {}),
    }


def beside(found: Plain) -> dict[str, Any]:
    """Describe a plain Kubernetes."""
    return {
        "count": found.nodes,
        "cpus": found.cpus,
        "memory_mib": found.memory_mib,
        "programs": list(found.programs),
        "alone": found.alone,
    }


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "unknown")
