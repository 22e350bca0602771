"""ephemeral: a claim that is made for the pod, and goes with it."""

from __future__ import annotations

from typing import Any

from isthmus.kubelet.volumes.claim import Claim
from isthmus.model.pod_inputs import Object


class Ephemeral(Claim):
    """A claim that the pod has made."""

    name = "ephemeral"

    def claim(self, pod: Object, volume: str, source: Any) -> str:
        """Return the name by which controllers make it."""
        return f"{pod['metadata']['name']}-{volume}"

    def is_read_only(self, source: Any) -> bool:
        """The pod made it, to write it."""
        return False


KIND = Ephemeral()
