"""The kubelet's settings: environment variables of the control plane, and the site's /etc/isthmus/kubernetes.json."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from isthmus.clients.job_feed import Source
from isthmus.model.network import Driver
from isthmus.model.pod_inputs import PodSettings

SCHEMA = 1
FILE = Path("/etc/isthmus/kubernetes.json")
# A control plane that does not say its version is of before there were others.
_VERSION = "1.36.3"
# The keys of `pods` in the file; fields of `PodSettings`.
_MEMORY = ("memory_mib", "least_memory_mib", "overhead_mib", "container_overhead_mib")
_OWN = frozenset({"cpus", *_MEMORY, "account", "partition", "gres", "ids"})
_REMEDY = "an admin writes it again with playbooks/kubernetes.yml"


class SettingsError(Exception):
    """The settings are invalid; the message names the problem and the remedy."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of the kubelet.

    Attributes:
        cluster: folder of the control plane, ~/.isthmus/cluster.
        address: where the API server and supervisors reach the kubelet.
        port: of the kubelet API.
        channel_port: of the server for supervisors.
        slurm_prefix: Slurm's installation prefix.
        version: of the API server, without `v`.
        volumes: folder on a compute node's disk for its volumes.
        pods: settings of admission and translation.
        image_days: how long an unused image is kept that the kubelet pulled; 0 for no limit.
        image_gib: the size limit of a user's images together, GiB; 0 for no limit.
        source: address of isthmus-jobsd; None if it is not configured.
        figures: whether it gets reports of how many pods there are and how long they took to start.
    """

    cluster: Path
    address: str
    port: int
    channel_port: int
    slurm_prefix: Path
    version: str
    volumes: Path
    pods: PodSettings
    image_days: int = 30
    image_gib: int = 0
    source: Source | None = None
    figures: bool = False

    @property
    def folder(self) -> Path:
        """The user's folder, ~/.isthmus."""
        return self.cluster.parent


def read(environment: Mapping[str, str], path: Path = FILE) -> Settings:
    """Read and check the settings.

    Raises:
        SettingsError: something is missing or of a wrong type.
    """
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
        if raw.get("schema") != SCHEMA:
            raise SettingsError(f"{path}: schema {raw.get('schema')}, this version reads {SCHEMA}; {_REMEDY}")
        return _settings(environment, raw)
    except KeyError as error:
        raise SettingsError(f"{error} is not set; start the kubelet by `isthmus up`") from error
    except (OSError, ValueError, TypeError) as error:
        raise SettingsError(f"{path}: {error}; {_REMEDY}") from error


def _settings(environment: Mapping[str, str], raw: Mapping[str, Any]) -> Settings:
    cluster = Path(environment["ISTHMUS_CLUSTER_DIR"])
    address = environment["ISTHMUS_ADDRESS"]
    driver = Driver(raw.get("driver", Driver.NONE))
    own = dict(raw.get("pods") or {})
    if unknown := own.keys() - _OWN:
        raise ValueError(f"pods: unknown {', '.join(sorted(unknown))}")
    command = raw.get("kubelet") or ()
    pods = PodSettings(
        node=environment["ISTHMUS_NODE_NAME"],
        home=str(cluster.parent.parent),
        pods=str(cluster.parent / "pods"),
        driver=driver,
        domain=raw.get("domain", "cluster.local"),
        # The cluster's DNS runs beside the kubelet; without a pod network pods use the node's resolver.
        dns="" if driver == Driver.NONE else address,
        **({"python": command[0]} if command else {}),
        **own,
    )
    source = raw.get("jobs") or {}
    return Settings(
        cluster=cluster,
        address=address,
        port=int(environment.get("ISTHMUS_KUBELET_PORT", "10250")),
        channel_port=int(environment.get("ISTHMUS_CHANNEL_PORT", "10260")),
        slurm_prefix=Path(raw.get("slurm_prefix", "/usr")),
        # Never that of the newest image here: a kubelet must not be newer than its API server.
        version=environment.get("ISTHMUS_KUBERNETES", _VERSION),
        volumes=Path(raw.get("local_volumes", "/var/tmp")),  # noqa: S108
        pods=pods,
        image_days=int(raw.get("image_days", 30)),
        image_gib=int(raw.get("image_gib", 0)),
        source=Source(str(source["address"]), int(source["port"])) if source else None,
        # The control plane's word is the user's; started without one, the kubelet says nothing.
        figures=bool(raw.get("figures")) and environment.get("ISTHMUS_FIGURES") == "yes",
    )
