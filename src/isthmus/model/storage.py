"""PersistentVolumes that the kubelet makes for claims."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# Provisioners of the StorageClasses home and local.
HOME, LOCAL = "isthmus/home", "isthmus/local"
PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"


def is_provisioned(volume: Mapping[str, Any]) -> bool:
    """Return whether a PersistentVolume was made here."""
    return (volume.get("metadata", {}).get("annotations") or {}).get(PROVISIONED_BY) in (HOME, LOCAL)
