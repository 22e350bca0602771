"""Builders of pods and of what they name, for tables of cases."""

from typing import Any

from isthmus.model.pod_inputs import Image, PodSettings, Resolved

UID = "7d4b9c6e-0000-4000-8000-000000000001"
SETTINGS = PodSettings(
    node="slurm",
    home="/home/alice",
    pods="/home/alice/.isthmus/pods",
    dns="10.96.0.10",
    features=frozenset({"avx512", "a100", "h100"}),
    slurm_nodes=frozenset({"c1", "c2", "c3"}),
    qos=frozenset({"normal", "high"}),
    labels={"kubernetes.io/os": "linux", "kubernetes.io/hostname": "slurm", "cores": "64"},
)
IMAGE = Image("/images/sha256-1.squashfs", "sha256:1", "app@sha256:1", ("/entry",), ("serve",), ("PATH=/bin",))


def container(name: str = "app", **fields: Any) -> dict[str, Any]:
    """Return a container that names an image of `resolved`."""
    return {"name": name, "image": "app", **fields}


def pod(*containers: dict[str, Any], annotations: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    """Return a pod; without containers it has one."""
    meta = {"name": "web", "namespace": "shop", "uid": UID, "labels": {"app": "web"}}
    if annotations:
        meta["annotations"] = annotations
    return {"metadata": meta, "spec": {"containers": [*containers] or [container()], **spec}, "status": {}}


def resolved(**fields: Any) -> Resolved:
    """Return what pods of these tests name."""
    return Resolved(**{"settings": SETTINGS, "images": {"app": IMAGE}, **fields})
