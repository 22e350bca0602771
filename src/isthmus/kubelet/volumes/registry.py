"""The registry of volume kinds: every module of this folder with a KIND."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from isthmus.kubelet import volumes as folder
from isthmus.kubelet.translate.resources import Demand
from isthmus.kubelet.volumes.kind import NOTHING, Content, Kind, Of
from isthmus.model.pod_inputs import Object, Resolved, Wanted
from isthmus.podproto.plan import Volume


def kinds() -> Mapping[str, Kind]:
    """Return the kinds by their names."""
    return {kind.name: kind for kind in _found() if kind.is_volume}


def sources() -> Mapping[str, Content]:
    """Return the kinds that may be sources of a projected volume."""
    return {kind.name: kind for kind in _found() if isinstance(kind, Content) and kind.is_source}


def problems(volume: Object) -> Iterator[str]:
    """Yield the problems of a pod's volume."""
    said = {name: source for name, source in volume.items() if name != "name" and source is not None}
    unknown = said.keys() - kinds().keys()
    if unknown or not said:
        yield f"{', '.join(sorted(unknown)) or 'nothing'} is not offered; use one of {', '.join(sorted(kinds()))}"
    for kind, source in _of(volume):
        yield from kind.problems(source)


def wanted(pod: Object) -> Wanted:
    """Return the references of a pod's volumes."""
    return sum((kind.wanted(pod, volume["name"], source) for volume, kind, source in _all(pod)), NOTHING)


def images(pod: Object) -> Iterator[tuple[str, Object]]:
    """Yield the volumes of a pod that need an image: name, and the image in a container's form."""
    for volume, kind, source in _all(pod):
        if (image := kind.image(source)) is not None:
            yield volume["name"], image


def read_only(pod: Object) -> set[str]:
    """Return the volumes that no container may write, whatever its mounts say."""
    return {volume["name"] for volume, kind, source in _all(pod) if kind.is_read_only(source)}


def node_paths(pod: Object) -> set[str]:
    """Return the volumes that are paths of compute nodes."""
    return {volume["name"] for volume, kind, _ in _all(pod) if kind.is_node_path}


def no_propagation(pod: Object) -> dict[str, str]:
    """Return the volumes in which mounts reach no other container, and why."""
    return {volume["name"]: kind.no_propagation for volume, kind, _ in _all(pod) if kind.no_propagation}


def of_first_node(pod: Object) -> set[str]:
    """Return the volumes that the other nodes of the pod's job do not have."""
    return {volume["name"] for volume, kind, _ in _all(pod) if not kind.is_on_all_nodes}


def plan(pod: Object, demand: Demand, resolved: Resolved, *, changing: bool = False) -> tuple[Volume, ...]:
    """Return the volumes of a pod as its supervisor makes them.

    Args:
        pod: the pod; what it may not have is refused before.
        demand: of the pod.
        resolved: what it names.
        changing: only those with content from the API server.

    Raises:
        UnreadyError: a reference that is not optional is missing.
    """
    found = ((volume, kind, source) for volume, kind, source in _all(pod) if kind.is_content or not changing)
    return tuple(kind.plan(Of(pod, volume["name"], demand, resolved), source) for volume, kind, source in found)


def _all(pod: Object) -> Iterator[tuple[Object, Kind, Any]]:
    for volume in pod["spec"].get("volumes") or ():
        # The API server lets a volume have one source.
        for kind, source in [*_of(volume)][:1]:
            yield volume, kind, source


def _of(volume: Object) -> Iterator[tuple[Kind, Any]]:
    for name, kind in kinds().items():
        if volume.get(name) is not None:
            yield kind, volume[name]


@cache
def _found() -> tuple[Kind, ...]:
    modules = [import_module(f"{folder.__name__}.{one.name}") for one in iter_modules(folder.__path__)]
    return tuple(module.KIND for module in modules if hasattr(module, "KIND"))
