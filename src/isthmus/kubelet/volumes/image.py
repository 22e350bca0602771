"""image: the files of an image, never written."""

from __future__ import annotations

from typing import Any

from isthmus.kubelet.volumes.kind import NOTHING, Kind, Of, missing
from isthmus.model.pod_inputs import Object, Wanted
from isthmus.podproto.plan import Volume


class Image(Kind):
    """An image."""

    name = "image"
    is_on_all_nodes = True

    def wanted(self, pod: Object, volume: str, source: Any) -> Wanted:
        """Return the image's name."""
        return Wanted(images=frozenset({source["reference"]}), services=False) if source.get("reference") else NOTHING

    def image(self, source: Any) -> Object | None:
        """Return the image and its pull policy."""
        return {"image": source.get("reference") or "", "imagePullPolicy": source.get("pullPolicy")}

    def plan(self, of: Of, source: Any) -> Volume:
        """Return the file of the image."""
        reference = source.get("reference") or ""
        if reference not in of.resolved.images:
            raise missing(f"image {reference!r} of volume {of.name} is not ready; wait for it")
        return Volume(of.name, "image", path=of.resolved.images[reference].path)


KIND = Image()
