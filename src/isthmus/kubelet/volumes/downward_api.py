"""downwardAPI: files with fields of the pod and resources of its containers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from isthmus.kubelet.translate import downward
from isthmus.kubelet.volumes.kind import Content, Of
from isthmus.model.pod_inputs import Object
from isthmus.podproto.plan import Fact, File


class DownwardAPI(Content):
    """What the pod is, as files."""

    name = "downwardAPI"

    def problems(self, source: Any) -> Iterator[str]:
        """Give fields that nobody can ask for."""
        for item in source.get("items") or ():
            path = (item.get("fieldRef") or {}).get("fieldPath")
            if path is not None and not downward.is_field(path):
                yield f"field {path} cannot be asked for; see the downward API of Kubernetes"

    def files(self, of: Of, source: Any, mode: int) -> Iterator[File]:
        """Give a file for each item."""
        for item in source.get("items") or ():
            yield File(item["path"], item.get("mode", mode), _text(of, item).encode())


def _text(of: Of, item: Object) -> str:
    if reference := item.get("fieldRef"):
        found = downward.field(of.pod, reference["fieldPath"])
        # The API lets no address into a file.
        return "" if isinstance(found, Fact) else found
    reference = item["resourceFieldRef"]
    containers = [*of.pod["spec"]["containers"], *(of.pod["spec"].get("initContainers") or ())]
    container: Object = next((one for one in containers if one["name"] == reference.get("containerName")), {})
    return downward.resource(container, of.demand, reference["resource"], reference.get("divisor") or 1)


KIND = DownwardAPI()
