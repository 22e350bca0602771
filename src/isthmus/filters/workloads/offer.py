"""Layer workloads: the site's offer to users, as files for hosts.

Ansible tags the strings of its templates, which YAML does not serialize; they are converted to plain ones here.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from isthmus.filters.workloads import mpi as mpi_operator

# In the order in which `isthmus workloads` shows them.
WORKLOADS = ("mpi",)
_MPI_IMAGES = ["mpi-operator-controller", "mpi-operator-openmpi", "mpi-operator-mpich"]
_INTEL = "mpi-operator-intel"
SCHEMA = 1


def workloads_images(enabled: Iterable[str], *, intel: bool = False) -> list[str]:
    """Return the recipes of build/images/workloads that the enabled workloads need.

    Args:
        enabled: names.
        intel: whether the admin accepts the licence of Intel MPI.
    """
    return [*_MPI_IMAGES, *([_INTEL] if intel else [])] if "mpi" in list(enabled) else []


def workloads_programs(enabled: Iterable[str]) -> list[str]:
    """Return the programs of artifacts.yml that the workloads need."""
    return ["mpi-operator", "mpi-operator.yaml", "podgroups.yaml", "mpi-pi.cc"] if "mpi" in list(enabled) else []


def workloads_references(recipes: Iterable[Mapping[str, Any]], repository: str) -> dict[str, str]:
    """Return recipe -> the fixed reference of its image."""
    return {str(recipe["name"]): f"{repository}/{recipe['name']}:{recipe['key']}" for recipe in recipes}


def workloads_mpi_files(site: Mapping[str, Any]) -> dict[str, str]:
    """Return the MPI Operator's files: path below its folder -> content.

    Args:
        site: obtained (programs of the role artifacts), policies (path), images (name -> reference), domain and
            memory_mib.
    """
    plain = json.loads(json.dumps(dict(site)))
    obtained = plain["obtained"]["mpi-operator.yaml"]
    files = mpi_operator.Files(
        Path(obtained["path"]), Path(plain["obtained"]["podgroups.yaml"]["path"]), Path(plain["policies"])
    )
    resources = mpi_operator.resources(int(plain["memory_mib"]))
    image, version = plain["images"]["mpi-operator-controller"], str(obtained["version"])
    shape = mpi_operator.Shape(image, plain["domain"], mpi_operator.NAMESPACE, resources, version)
    charted = mpi_operator.chart(files, shape)
    return {
        "manifest.yaml": mpi_operator.manifest(files, shape),
        **{f"chart/{path}": content for path, content in charted.items()},
        **{f"examples/{path}": content for path, content in mpi_operator.examples(plain["images"]).items()},
    }


def workloads_entries(folder: str, workloads: Mapping[str, Mapping[str, str]]) -> list[dict[str, str]]:
    """Return the entries of `host_files`: each workload's files below a folder of its name, with the folders.

    Args:
        folder: of all of them.
        workloads: name -> path -> content; one without files is not offered.
    """
    paths = {f"{folder}/{name}/{path}": text for name, files in workloads.items() for path, text in files.items()}
    parents = {folder, *(str(up) for path in paths for up in Path(path).parents if up.is_relative_to(folder))}
    return [
        *({"path": parent, "state": "directory"} for parent in sorted(parents)),
        *({"path": path, "content": content} for path, content in paths.items()),
    ]


def workloads_index(enabled: Iterable[str], site: Mapping[str, Any]) -> str:
    """Return /etc/isthmus/workloads.json: the workloads that users of this host may add.

    Args:
        enabled: names.
        site: obtained (programs), folder, images (name -> reference).
    """
    mpi = {
        "title": f"MPI Operator: MPIJobs with Open MPI, MPICH{', Intel MPI' if _INTEL in site['images'] else ''}",
        "version": str(site["obtained"].get("mpi-operator", {}).get("version", "")),
        "licence": "Apache-2.0",
        "folder": f"{site['folder']}/mpi",
        "namespace": mpi_operator.NAMESPACE,
        "deployment": mpi_operator.NAME,
        "kind": "MPIJob",
        "resources": "/apis/kubeflow.org/v2beta1/mpijobs",
        "images": dict(site["images"]),
    }
    known = {"mpi": mpi}
    offered = {name: known[name] for name in WORKLOADS if name in list(enabled)}
    return json.dumps({"schema": SCHEMA, "workloads": offered}, indent=2) + "\n"


FILTERS: dict[str, Callable[..., object]] = {
    "workloads_entries": workloads_entries,
    "workloads_images": workloads_images,
    "workloads_index": workloads_index,
    "workloads_mpi_files": workloads_mpi_files,
    "workloads_programs": workloads_programs,
    "workloads_references": workloads_references,
}
