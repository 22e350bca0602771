"""The interface of a volume kind. To add one, write `<kind>.py` here and its counterpart in the supervisor.

A kind is an object of a class below, named KIND in its module; `registry` finds it. What its files are on the compute
node is the plan's `Volume.kind`: the name of a module of `isthmus.supervisor.volumes`. Several kinds may share
one: a ConfigMap, a Secret and a token all become files.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from isthmus.kubelet.pods.unready import UnreadyError
from isthmus.kubelet.translate.resources import Demand
from isthmus.model.pod_inputs import Object, Resolved, Wanted
from isthmus.podproto.plan import File, Volume
from isthmus.podproto.reasons import Reason

NOTHING = Wanted(services=False)
_MODE = 0o644


@dataclass(frozen=True, slots=True)
class Of:
    """The volume of a pod that is being planned.

    Attributes:
        pod: whose it is.
        name: as the pod names it.
        demand: of the pod.
        resolved: the pod's references.
    """

    pod: Object
    name: str
    demand: Demand
    resolved: Resolved

    @property
    def group(self) -> int | None:
        """The pod's fsGroup."""
        gid: int | None = (self.pod["spec"].get("securityContext") or {}).get("fsGroup")
        return gid


class Kind:
    """A kind of volumes.

    Attributes:
        name: the field of a pod's volume that has its source.
        is_volume: a pod may have it as a volume; otherwise it is a source of projected volumes only.
        is_source: it may be a source of a projected volume.
        is_content: the API gives its files, and they are sent again when they have changed.
        is_node_path: it is a path of the compute nodes, which other pods may have, too.
        is_on_all_nodes: all nodes of the pod's job see it.
        no_propagation: why mounts in it reach no other container, with a remedy; empty where they may.
    """

    name: str
    is_volume = True
    is_source = False
    is_content = False
    is_node_path = False
    is_on_all_nodes = False
    no_propagation = ""

    def problems(self, source: Any) -> Iterator[str]:
        """Yield the problems of a volume, each with a remedy."""
        yield from ()

    def wanted(self, pod: Object, volume: str, source: Any) -> Wanted:
        """Return its references, to be resolved before the plan."""
        return NOTHING

    def image(self, source: Any) -> Object | None:
        """Return the image it needs, as a container names one; None for none."""
        return None

    def is_read_only(self, source: Any) -> bool:
        """Return whether containers may not write it, whatever their mounts say."""
        return False

    def plan(self, of: Of, source: Any) -> Volume:
        """Return its part of the plan.

        Raises:
            UnreadyError: a reference that is not optional is missing.
        """
        raise NotImplementedError


class Content(Kind):
    """A kind whose files the API gives; it may be a source of a projected volume, too."""

    is_source = is_content = True

    def plan(self, of: Of, source: Any) -> Volume:
        """Return its files; the later of two with one path wins."""
        mode = source.get("defaultMode")
        found = self.files(of, source, _MODE if mode is None else mode)
        return Volume(of.name, "files", files=tuple({file.path: file for file in found}.values()), gid=of.group)

    def files(self, of: Of, source: Any, mode: int) -> Iterator[File]:
        """Yield its files.

        Args:
            of: the volume.
            source: what the volume, or the projected volume, says.
            mode: of files that have none of their own.

        Raises:
            UnreadyError: a reference that is not optional is missing.
        """
        raise NotImplementedError


def missing(message: str) -> UnreadyError:
    """Return the error of a volume with a missing reference."""
    return UnreadyError(Reason.MOUNT, message)
