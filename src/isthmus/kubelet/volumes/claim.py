"""persistentVolumeClaim: the path that stands behind the PersistentVolume of a claim."""

from __future__ import annotations

from typing import Any

from isthmus.kubelet.volumes.kind import Kind, Of, missing
from isthmus.model.pod_inputs import Object, Wanted
from isthmus.model.storage import is_provisioned
from isthmus.podproto.plan import Volume


class Claim(Kind):
    """A claim that the pod names."""

    name = "persistentVolumeClaim"
    is_node_path = is_on_all_nodes = True

    def claim(self, pod: Object, volume: str, source: Any) -> str:
        """Return the claim's name."""
        return str(source["claimName"])

    def wanted(self, pod: Object, volume: str, source: Any) -> Wanted:
        """Return the claim."""
        return Wanted(claims=frozenset({self.claim(pod, volume, source)}), services=False)

    def is_read_only(self, source: Any) -> bool:
        """Return whether the pod only reads it."""
        return bool(source.get("readOnly"))

    def plan(self, of: Of, source: Any) -> Volume:
        """Return the path behind its volume."""
        claim = self.claim(of.pod, of.name, source)
        persistent = of.resolved.volumes.get(claim)
        if persistent is None:
            raise missing(f'persistentvolumeclaim "{claim}" is not bound; create it, or wait for it')
        for kind in ("hostPath", "local"):
            if found := persistent["spec"].get(kind):
                group, kept = _group(of, persistent, is_read=self.is_read_only(source))
                host_type = found.get("type") or ""
                return Volume(of.name, "host", None, found["path"], host_type, gid=group, is_group_kept=kept)
        raise missing(
            f'the volume of persistentvolumeclaim "{claim}" is neither hostPath nor local; use such a StorageClass'
        )


def _group(of: Of, persistent: Object, *, is_read: bool) -> tuple[int | None, bool]:
    """Return fsGroup for a volume, and whether what its folder shows is enough (fsGroupChangePolicy).

    What somebody else made and named as a hostPath is left as it is, as everywhere; so is what the pod only reads.
    """
    context = of.pod["spec"].get("securityContext") or {}
    if is_read or not (persistent["spec"].get("local") or is_provisioned(persistent)):
        return None, False
    return context.get("fsGroup"), context.get("fsGroupChangePolicy") == "OnRootMismatch"


KIND = Claim()
