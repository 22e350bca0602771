"""The site's settings, /etc/isthmus/kubernetes.json, which role `kubernetes` writes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path
from typing import Any

from isthmus.controlplane.errors import ControlPlaneError
from isthmus.controlplane.versions.plan import UNRECORDED, Image
from isthmus.model.network import Driver

FILE = Path("/etc/isthmus/kubernetes.json")
SCHEMA = 1
SERVICES = IPv4Network("10.96.0.0/16")
_REMEDY = "an admin writes it again with playbooks/kubernetes.yml"


class DataLocation(StrEnum):
    """Where etcd keeps its data: on the shared home, or on the node's own disk with snapshots on the home."""

    HOME = "home"
    NODE = "node"


@dataclass(frozen=True, slots=True)
class Settings:
    """One site's settings.

    Attributes:
        image: the file with the four programs.
        versions: program -> version, for people.
        images: all images of the site, the present one and earlier ones; empty for the present one alone.
        domain: of Services and pods.
        network_domain: of the names that the network layer gives to jobs; empty for none.
        services: the addresses of Services.
        driver: the network of the control plane and of pods.
        headless: whether Services get no address of their own.
        cpus: of the control plane's job.
        memory_mib: of that job.
        time: its limit as Slurm writes it; empty for the partition's own.
        handover_s: so long before the limit a successor is submitted, seconds.
        partition: where it runs unless the user says; empty for Slurm's choice.
        node: the name of the one node that all pods are bound to.
        kubelet: the command of the kubelet.
        data: where etcd keeps its data unless the user says.
        data_dir: a folder of the node's own disk that everybody may write to.
        figures: whether kubelets report counts to the site, where their users let them.
        snapshot_s: from one snapshot of such data to the next, seconds.
    """

    image: Path
    versions: Mapping[str, str] = field(default_factory=dict)
    images: tuple[Image, ...] = ()
    domain: str = "cluster.local"
    network_domain: str = ""
    services: IPv4Network = SERVICES
    driver: Driver = Driver.PRIVATE
    headless: bool = False
    cpus: int = 1
    memory_mib: int = 2048
    time: str = ""
    handover_s: int = 600
    partition: str = ""
    node: str = "slurm"
    kubelet: tuple[str, ...] = ("/opt/isthmus/bin/python", "-m", "isthmus.kubelet")
    data: DataLocation = DataLocation.HOME
    data_dir: Path = Path("/var/tmp")  # noqa: S108 -- the folder in it is checked (nodedisk)
    snapshot_s: int = 30
    figures: bool = False

    @property
    def api_service(self) -> IPv4Address:
        """The address of the Service `kubernetes`: the first of the range, as the API server takes it."""
        return self.services[1]

    @property
    def choices(self) -> tuple[Image, ...]:
        """The images that a start may choose from."""
        names = (("kube-apiserver", UNRECORDED.kubernetes), ("etcd", UNRECORDED.etcd))
        return self.images or (Image(self.image, *(self.versions.get(name, known) for name, known in names)),)

    @property
    def has_network(self) -> bool:
        """Whether the control plane has a network namespace of its own, with all ports free."""
        return self.driver is not Driver.NONE


def read(path: Path = FILE) -> Settings:
    """Read the site's settings; keys of other programs' are left alone.

    Raises:
        ControlPlaneError: this host has none, or they cannot be read.
    """
    try:
        return parse(json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError as error:
        raise ControlPlaneError(f"{path} is missing; this host is no member of layer kubernetes, {_REMEDY}") from error
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ControlPlaneError(f"{path}: {error!r}; {_REMEDY}") from error


def parse(document: Mapping[str, Any]) -> Settings:
    """Return the settings in a parsed file.

    Raises:
        ValueError: the schema is another one, or a value is none of its kind.
    """
    if document["schema"] != SCHEMA:
        raise ValueError(f"schema {document['schema']!r} is not {SCHEMA}")
    kinds: dict[str, Any] = {
        "image": Path,
        "images": _images,
        "services": IPv4Network,
        "driver": Driver,
        "kubelet": tuple,
        "cpus": int,
        "memory_mib": int,
        "handover_s": int,
        "data": DataLocation,
        "data_dir": Path,
        "snapshot_s": int,
        "figures": bool,
    }
    known = {each.name for each in fields(Settings)}
    return Settings(**{name: kinds.get(name, _same)(value) for name, value in document.items() if name in known})


def _images(rows: Any) -> tuple[Image, ...]:
    return tuple(Image(Path(row["file"]), str(row["kubernetes"]), str(row["etcd"])) for row in rows)


def _same(value: Any) -> Any:
    return value
