"""secret: a file for each key of a Secret; they lie in memory only."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

from isthmus.kubelet.volumes import keys
from isthmus.kubelet.volumes.kind import NOTHING, Content, Of
from isthmus.model.pod_inputs import Object, Wanted
from isthmus.podproto.plan import File


class Secret(Content):
    """A Secret's keys."""

    name = "secret"

    def wanted(self, pod: Object, volume: str, source: Any) -> Wanted:
        """Return its name."""
        return Wanted(secrets=frozenset({_name(source)}), services=False) if _name(source) else NOTHING

    def files(self, of: Of, source: Any, mode: int) -> Iterator[File]:
        """Give its keys."""
        known = of.resolved.secrets.get(_name(source))
        yield from keys.files("secret", _name(source), None if known is None else _data(known), source, mode)


def _name(source: Object) -> str:
    # Of a volume, and of a source of a projected one.
    return str(source.get("secretName") or source.get("name") or "")


def _data(known: Object) -> dict[str, bytes]:
    return {key: base64.b64decode(value) for key, value in (known.get("data") or {}).items()}


KIND = Secret()
