"""projected: the files of several sources in one volume."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from isthmus.kubelet.volumes import registry
from isthmus.kubelet.volumes.kind import NOTHING, Content, Of
from isthmus.model.pod_inputs import Object, Wanted
from isthmus.podproto.plan import File


class Projected(Content):
    """Several sources."""

    name = "projected"
    is_source = False

    def problems(self, source: Any) -> Iterator[str]:
        """Give sources that are none, and what is wrong with the others."""
        known = registry.sources()
        for one in source.get("sources") or ():
            for name, value in sorted(one.items()):
                if value is not None and name not in known:
                    yield f"projected {name} is not offered; use one of {', '.join(sorted(known))}"
        for kind, one in _sources(source):
            yield from kind.problems(one)

    def wanted(self, pod: Object, volume: str, source: Any) -> Wanted:
        """Return what all sources name."""
        return sum((kind.wanted(pod, volume, one) for kind, one in _sources(source)), NOTHING)

    def files(self, of: Of, source: Any, mode: int) -> Iterator[File]:
        """Give the files of all sources."""
        for kind, one in _sources(source):
            yield from kind.files(of, one, mode)


def _sources(source: Object) -> Iterator[tuple[Content, Any]]:
    known = registry.sources()
    for one in source.get("sources") or ():
        yield from ((known[name], value) for name, value in one.items() if value is not None and name in known)


KIND = Projected()
