"""Inputs of the decisions about a pod, beside the pod itself: settings of the cluster, and resolved references.

Objects of the API are plain JSON, as the API server writes them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from isthmus.model.image_accounts import Accounts
from isthmus.model.network import Driver

Object = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class PodSettings:
    """What holds for all pods of a user's cluster.

    Attributes:
        node: name of the node object.
        home: the user's home folder.
        pods: folder of the pods' folders, absolute.
        python: interpreter with the supervisor on the nodes.
        driver: pod network of jobs; NONE also where the nodes have no plugin for one.
        domain: of cluster names.
        dns: address of the cluster's DNS server; empty for none.
        cpus: of a pod without requests.
        memory_mib: of a container without requests.
        least_memory_mib: of a container that requests memory and sets no limit.
        overhead_mib: of a pod beside its containers: the supervisor.
        container_overhead_mib: beside each container: Apptainer, its file systems, a step of Slurm.
        account: Slurm account; empty for the user's default.
        partition: Slurm partition; empty for the default.
        gres: resource name -> Slurm's `name[:type]`.
        features: words Slurm's nodes know, for `--constraint`.
        slurm_nodes: names of Slurm's nodes.
        qos: names of the QOS this user may use.
        labels: of the node object.
        ids: how many uids and gids a container may use, counted from 0.
    """

    node: str
    home: str
    pods: str
    python: str = "/opt/isthmus/bin/python"
    driver: Driver = Driver.PRIVATE
    domain: str = "cluster.local"
    dns: str = ""
    cpus: int = 1
    memory_mib: int = 256
    least_memory_mib: int = 64
    overhead_mib: int = 32
    container_overhead_mib: int = 24
    account: str = ""
    partition: str = ""
    gres: Mapping[str, str] = field(default_factory=lambda: {"nvidia.com/gpu": "gpu", "amd.com/gpu": "gpu"})
    features: frozenset[str] = frozenset()
    slurm_nodes: frozenset[str] = frozenset()
    qos: frozenset[str] = frozenset()
    labels: Mapping[str, str] = field(default_factory=dict)
    ids: int = 65536


@dataclass(frozen=True, slots=True)
class Image:
    """An image that is ready to start (OCI image configuration, `config`).

    Attributes:
        path: the squashfs file.
        digest: `sha256:...` of the manifest.
        id: what the status shows, `NAME@DIGEST`.
        entrypoint: words before the command.
        cmd: default command.
        env: `NAME=value` each.
        user: `uid[:gid]` or names; empty for root.
        workdir: empty for the root.
        accounts: its users and groups.
    """

    path: str
    digest: str
    id: str
    entrypoint: tuple[str, ...] = ()
    cmd: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    user: str = ""
    workdir: str = ""
    accounts: Accounts = field(default_factory=Accounts)


@dataclass(frozen=True, slots=True)
class TokenRequest:
    """A service account token a pod wants; an empty audience is the API server's own."""

    audience: str = ""
    expires_s: int = 3600


@dataclass(frozen=True, slots=True)
class Wanted:
    """What must be asked for before a pod can be translated; optional things are in it too.

    Attributes:
        images: as the containers and volumes write them.
        config_maps: names, in the pod's namespace.
        secrets: names, in the pod's namespace; pull secrets are not in it.
        claims: names of PersistentVolumeClaims.
        tokens: of the pod's service account.
        services: whether variables of Services are wanted.
    """

    images: frozenset[str] = frozenset()
    config_maps: frozenset[str] = frozenset()
    secrets: frozenset[str] = frozenset()
    claims: frozenset[str] = frozenset()
    tokens: frozenset[TokenRequest] = frozenset()
    services: bool = True

    def __add__(self, other: Wanted) -> Wanted:
        """Return what either of them has."""
        return Wanted(
            self.images | other.images,
            self.config_maps | other.config_maps,
            self.secrets | other.secrets,
            self.claims | other.claims,
            self.tokens | other.tokens,
            self.services or other.services,
        )


@dataclass(frozen=True, slots=True)
class Resolved:
    """What a pod names, as found; what is missing here does not exist.

    Attributes:
        settings: of the cluster.
        images: as the containers and volumes write them -> the image.
        config_maps: name -> ConfigMap.
        secrets: name -> Secret.
        volumes: name of a claim -> the PersistentVolume it is bound to.
        tokens: the tokens' text.
        services: Services of the pod's namespace, and `default/kubernetes`.
    """

    settings: PodSettings
    images: Mapping[str, Image] = field(default_factory=dict)
    config_maps: Mapping[str, Object] = field(default_factory=dict)
    secrets: Mapping[str, Object] = field(default_factory=dict)
    volumes: Mapping[str, Object] = field(default_factory=dict)
    tokens: Mapping[TokenRequest, str] = field(default_factory=dict)
    services: tuple[Object, ...] = ()


@dataclass(frozen=True, slots=True)
class ImageState:
    """Where the image of a container stands.

    Attributes:
        reason: why the container waits: `ErrImagePull`, `ImagePullBackOff`, `ErrImageNeverPull`,
            `InvalidImageName`, or empty while it is pulled or when it is there.
        message: what went wrong, and the remedy.
        id: `NAME@DIGEST` when it is there.
    """

    reason: str = ""
    message: str = ""
    id: str = ""
