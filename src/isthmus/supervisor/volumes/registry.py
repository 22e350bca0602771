"""All kinds of volumes that there are: each module of this folder that has a KIND; loaded when a pod uses it."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from importlib import import_module
from importlib.util import find_spec

from isthmus.podproto.plan import PlanError, Volume
from isthmus.supervisor.volumes.kind import Kind

_FOLDER = __name__.rpartition(".")[0]


def of(volume: Volume) -> Kind:
    """Return the kind of a volume.

    Raises:
        PlanError: there is none of this name.
    """
    return _found(volume.kind)


def check(volumes: Iterable[Volume]) -> None:
    """Refuse volumes of kinds that are not here.

    Raises:
        PlanError: there is one.
    """
    for volume in volumes:
        of(volume)


@cache
def _found(name: str) -> Kind:
    module = f"{_FOLDER}.{name}"
    kind = getattr(import_module(module), "KIND", None) if name.isidentifier() and find_spec(module) else None
    if not isinstance(kind, Kind):
        raise PlanError(f"a volume of kind {name!r:.40}, which this supervisor does not know")
    return kind
