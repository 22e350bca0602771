"""The provisioner of PersistentVolumes: folders in the user's home, or on the disk of the first pod's compute node.

isthmus/home   binds immediately; visible on all nodes
isthmus/local  binds when the claim's first pod has a node; the volume's node affinity keeps later pods there
For any other class with WaitForFirstConsumer the claim is annotated with the node, as a scheduler would.
"""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

from isthmus.clients import subids
from isthmus.clients.kube.api import ConflictError, Kube, KubeError, NotFoundError, Object, Patch
from isthmus.clients.process import ProcessError
from isthmus.kubelet.objects.watching import follow
from isthmus.model.storage import HOME, LOCAL, PROVISIONED_BY, is_provisioned

SELECTED = "volume.kubernetes.io/selected-node"
_AGAIN_S = 10.0
_WAITS = "WaitForFirstConsumer"

_log = logging.getLogger(__name__)


class Claims:
    """The provisioner.

    Args:
        kube: the API server.
        node: name of the node object.
        home: the user's folder for volumes of the home.
        local: the folder for volumes on a node's disk; the user's own.
    """

    def __init__(self, kube: Kube, node: str, home: Path, local: Path) -> None:
        self._kube, self._node, self._home, self._local = kube, node, home, local
        self._claims: dict[str, Object] = {}
        self._released: dict[str, Object] = {}
        self._wake = asyncio.Event()

    async def run(self) -> None:
        """Watch claims and volumes; provision the former and delete released ones of the latter."""
        async with asyncio.TaskGroup() as group:
            for path, listed, changed in (
                ("/api/v1/persistentvolumeclaims", self._all_claims, self._claim),
                ("/api/v1/persistentvolumes", self._all_volumes, self._volume),
            ):
                group.create_task(follow(self._kube, path, {}, listed, changed))
            group.create_task(self._work())

    async def place(self, claim: Object, slurm_node: str) -> None:
        """Provision a claim on its pod's compute node; claims of other classes are ignored.

        Raises:
            KubeError: the API server refused the write or did not answer.
        """
        kind = await self._class(claim)
        if kind and kind["provisioner"] == LOCAL and not claim["spec"].get("volumeName"):
            await self._make(claim, kind, self._local, slurm_node)
            await self.select(claim)

    async def is_placed_later(self, claim: Object) -> bool:
        """Return whether a claim is bound only when its pod has a node."""
        kind = await self._class(claim)
        return bool(kind and kind["provisioner"] == LOCAL)

    async def missing_class(self, claim: Object) -> str:
        """Return the StorageClass that a claim names, if there is none of this name; empty otherwise."""
        name = str(claim["spec"].get("storageClassName") or "")
        return name if name and await self._class(claim) is None else ""

    async def select(self, claim: Object) -> None:
        """Annotate the claim with the selected node, as a scheduler would.

        Raises:
            KubeError: the API server refused the write or did not answer.
        """
        meta = claim["metadata"]
        if (meta.get("annotations") or {}).get(SELECTED):
            return
        path = f"/api/v1/namespaces/{meta['namespace']}/persistentvolumeclaims/{meta['name']}"
        await self._kube.patch(path, {"metadata": {"annotations": {SELECTED: self._node}}}, Patch.MERGE)

    def _all_claims(self, claims: list[Object]) -> None:
        self._claims = {}
        for claim in claims:
            self._claim("ADDED", claim)

    def _claim(self, kind: str, claim: Object) -> None:
        uid = claim["metadata"]["uid"]
        if kind == "DELETED" or claim["spec"].get("volumeName") or claim["metadata"].get("deletionTimestamp"):
            self._claims.pop(uid, None)
        else:
            self._claims[uid] = claim
            self._wake.set()

    def _all_volumes(self, volumes: list[Object]) -> None:
        self._released = {}
        for volume in volumes:
            self._volume("ADDED", volume)

    def _volume(self, kind: str, volume: Object) -> None:
        meta, spec = volume["metadata"], volume["spec"]
        ours = is_provisioned(volume)
        done = volume.get("status", {}).get("phase") == "Released" and spec["persistentVolumeReclaimPolicy"] == "Delete"
        if kind != "DELETED" and ours and done:
            self._released[meta["name"]] = volume
            self._wake.set()
        else:
            self._released.pop(meta["name"], None)

    async def _work(self) -> None:
        while True:
            self._wake.clear()
            for claim in [*self._claims.values()]:
                await self._guarded(self._provide(claim), claim)
            for volume in [*self._released.values()]:
                await self._guarded(self._remove(volume), volume)
            try:
                async with asyncio.timeout(_AGAIN_S):
                    await self._wake.wait()
            except TimeoutError:
                continue

    async def _guarded(self, work: object, about: Object) -> None:
        try:
            await work  # type: ignore[misc]
        except (KubeError, OSError, ProcessError) as error:
            _log.warning("%s waits: %s", about["metadata"]["name"], error)

    async def _provide(self, claim: Object) -> None:
        kind = await self._class(claim)
        if not kind or kind["provisioner"] != HOME:
            return
        selected = (claim["metadata"].get("annotations") or {}).get(SELECTED)
        if kind.get("volumeBindingMode") != _WAITS or selected:
            await self._make(claim, kind, self._home, None)
        self._claims.pop(claim["metadata"]["uid"], None)

    async def _make(self, claim: Object, kind: Object, parent: Path, slurm_node: str | None) -> None:
        volume = volume_for(claim, kind, parent, slurm_node)
        if slurm_node is None:
            await asyncio.to_thread(Path(volume["spec"]["hostPath"]["path"]).mkdir, 0o700, True, True)
        try:
            await self._kube.create("/api/v1/persistentvolumes", volume)
        except ConflictError:
            _log.debug("%s is there already", volume["metadata"]["name"])

    async def _remove(self, volume: Object) -> None:
        meta, path = volume["metadata"], Path(volume["spec"]["hostPath"]["path"])
        if meta["annotations"][PROVISIONED_BY] == HOME and is_made(path, self._home) and path.exists():
            await asyncio.to_thread(subids.remove, path)
        await self._kube.delete(f"/api/v1/persistentvolumes/{meta['name']}")
        self._released.pop(meta["name"], None)

    async def _class(self, claim: Object) -> Object | None:
        name = claim["spec"].get("storageClassName")
        try:
            return await self._kube.get(f"/apis/storage.k8s.io/v1/storageclasses/{name}") if name else None
        except NotFoundError:
            return None


def is_made(path: Path, parent: Path) -> bool:
    """Return whether this provisioner made a volume's folder: a PersistentVolume may name any path."""
    return path.parent == parent and path.name not in ("", "..") and not path.is_symlink()


def volume_for(claim: Object, kind: Object, parent: Path, slurm_node: str | None) -> Object:
    """Return the volume of a claim.

    Args:
        claim: the claim.
        kind: its StorageClass.
        parent: folder of the volume's folder.
        slurm_node: whose disk it is on; None where all nodes see it.
    """
    meta, spec = claim["metadata"], claim["spec"]
    name = f"pvc-{meta['uid']}"
    made: Object = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "annotations": {PROVISIONED_BY: kind["provisioner"]}},
        "spec": {
            "capacity": {"storage": spec["resources"]["requests"]["storage"]},
            "accessModes": spec["accessModes"],
            "volumeMode": "Filesystem",
            "storageClassName": kind["metadata"]["name"],
            "persistentVolumeReclaimPolicy": kind.get("reclaimPolicy", "Delete"),
            "hostPath": {"path": str(parent / f"{meta['namespace']}-{meta['name']}-{meta['uid'][:8]}")},
            "claimRef": {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "namespace": meta["namespace"],
                "name": meta["name"],
                "uid": meta["uid"],
            },
        },
    }
    if slurm_node:
        made["spec"]["hostPath"]["type"] = "DirectoryOrCreate"
        match = {"key": "kubernetes.io/hostname", "operator": "In", "values": [slurm_node]}
        made["spec"]["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": [match]}]}}
    return made
