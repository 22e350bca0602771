"""What kinds of volumes there are here, and why the others are not."""

from __future__ import annotations

from collections.abc import Iterator

from isthmus.kubelet.translate import downward
from isthmus.model.pod_inputs import Object

KINDS = frozenset(
    {
        *("emptyDir", "hostPath", "configMap", "secret", "projected", "downwardAPI", "persistentVolumeClaim"),
        *("ephemeral", "image"),
    }
)
SOURCES = frozenset({"configMap", "secret", "downwardAPI", "serviceAccountToken"})
_HOST_TYPES = frozenset(
    {"", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket", "CharDevice", "BlockDevice"}
)


def problems(pod: Object) -> Iterator[str]:
    """Give what is wrong with the volumes of a pod."""
    for volume in pod["spec"].get("volumes") or ():
        for problem in _volume(volume):
            yield f"volume {volume['name']}: {problem}"


def _volume(volume: Object) -> Iterator[str]:
    kinds = {name for name, value in volume.items() if name != "name" and value is not None}
    unknown = kinds - KINDS
    if unknown or not kinds:
        what = ", ".join(sorted(unknown)) or "nothing"
        yield f"{what} is not offered; use one of {', '.join(sorted(KINDS))}"
    medium = (volume.get("emptyDir") or {}).get("medium") or ""
    if medium not in ("", "Memory"):
        yield f"medium {medium} is not offered: Slurm gives no huge pages; use Memory"
    kind = (volume.get("hostPath") or {}).get("type") or ""
    if kind not in _HOST_TYPES:
        yield f"hostPath type {kind} is unknown; use one of {', '.join(sorted(_HOST_TYPES - {''}))}"
    for source in (volume.get("projected") or {}).get("sources") or ():
        for name in sorted(name for name, value in source.items() if value is not None and name not in SOURCES):
            yield f"projected {name} is not offered; use one of {', '.join(sorted(SOURCES))}"
    yield from _fields(volume)


def _fields(volume: Object) -> Iterator[str]:
    sources = [volume, *((volume.get("projected") or {}).get("sources") or ())]
    for item in [one for source in sources for one in (source.get("downwardAPI") or {}).get("items") or ()]:
        path = (item.get("fieldRef") or {}).get("fieldPath")
        if path is not None and not downward.is_field(path):
            yield f"field {path} cannot be asked for; see the downward API of Kubernetes"
