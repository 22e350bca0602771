"""configMap: a file for each key of a ConfigMap."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

from isthmus.kubelet.volumes import keys
from isthmus.kubelet.volumes.kind import NOTHING, Content, Of
from isthmus.model.pod_inputs import Object, Wanted
from isthmus.podproto.plan import File


class ConfigMap(Content):
    """A ConfigMap's keys."""

    name = "configMap"

    def wanted(self, pod: Object, volume: str, source: Any) -> Wanted:
        """Return its name."""
        return Wanted(config_maps=frozenset({source["name"]}), services=False) if source.get("name") else NOTHING

    def files(self, of: Of, source: Any, mode: int) -> Iterator[File]:
        """Give its keys."""
        name = source.get("name") or ""
        known = of.resolved.config_maps.get(name)
        yield from keys.files("configmap", name, None if known is None else _data(known), source, mode)


def _data(known: Object) -> dict[str, bytes]:
    binary = {key: base64.b64decode(value) for key, value in (known.get("binaryData") or {}).items()}
    return {**binary, **{key: value.encode() for key, value in (known.get("data") or {}).items()}}


KIND = ConfigMap()
