"""An API server's objects, for what makes and removes them; a strict stand-in for isthmus.clients.kube.apiserver."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from isthmus.clients.kube.errors import KubeError

# Kind -> its path's last part and whether objects are in namespaces; another kind is one the server does not have.
KINDS = {
    "Namespace": ("namespaces", False),
    "CustomResourceDefinition": ("customresourcedefinitions", False),
    "Deployment": ("deployments", True),
    "MPIJob": ("mpijobs", True),
}


class ApiObjects:
    """The objects, by path.

    Attributes:
        objects: path -> object.
        done: what was asked for, in its order: verb, kind and name.
        refusals: of the next dry runs, in their order.
        after: called behind each change, as controllers would act.
    """

    def __init__(self, after: Callable[[ApiObjects], None] = lambda _: None) -> None:
        self.objects: dict[str, dict[str, Any]] = {}
        self.done: list[tuple[str, str, str]] = []
        self.refusals: list[KubeError] = []
        self.after = after

    def get(self, path: str) -> Any:
        """Return an object, or the list of a kind in all namespaces."""
        if path in self.objects:
            return self.objects[path]
        base, _, plural = path.rpartition("/")
        listed = [each for key, each in self.objects.items() if key.startswith(base) and f"/{plural}/" in key]
        if listed or plural == "pods":
            return {"items": listed}
        raise KubeError(f"GET {path}: not found", 404)

    def apply(self, item: Mapping[str, Any], *, dry_run: bool = False) -> None:
        """Make an object so."""
        if dry_run:
            self.path(item)
            self.done.append(("dry run", item["kind"], item["metadata"]["name"]))
            if self.refusals:
                raise self.refusals.pop(0)
            return
        self.done.append(("apply", item["kind"], item["metadata"]["name"]))
        self.objects[self.path(item)] = dict(item)
        self.after(self)

    def delete(self, item: Mapping[str, Any], *, foreground: bool = False) -> None:
        """Remove an object; one that is gone is fine. In the foreground it stays until nothing is owned by it."""
        self.done.append(("delete", item["kind"], item["metadata"]["name"]))
        found = self.objects.get(self.path(item))
        if found and foreground and self._owned(found["metadata"]["name"]):
            found["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        else:
            self.objects.pop(self.path(item), None)
        self.after(self)

    def _owned(self, name: str) -> list[str]:
        owners = ((path, each["metadata"].get("ownerReferences", [])) for path, each in self.objects.items())
        return [path for path, found in owners if name in [owner["name"] for owner in found]]

    def path(self, item: Mapping[str, Any]) -> str:
        """Return where an object is."""
        version, meta = item["apiVersion"], item["metadata"]
        base = f"/apis/{version}" if "/" in version else f"/api/{version}"
        if item["kind"] not in KINDS:
            raise KubeError(f"the API server has no {version} {item['kind']}")
        plural, is_namespaced = KINDS[item["kind"]]
        scope = f"/namespaces/{meta['namespace']}" if is_namespaced else ""
        return f"{base}{scope}/{plural}/{meta['name']}"
