"""What a pod's supervisor is told to run; it needs nothing else of the pod.

Texts in `argv` and in values of variables may hold `$(NAME)` for what only the compute node knows (see `Fact`);
every other `$(` and `$$` in them is escaped by Kubernetes' rule, `$$` for `$`.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from enum import StrEnum
from typing import Any

SCHEMA = 1


class Fact(StrEnum):
    """What only the compute node knows; lists are separated by commas."""

    POD_IP = "pod_ip"
    POD_IPS = "pod_ips"
    HOST_IP = "host_ip"
    HOST_IPS = "host_ips"


class VolumeKind(StrEnum):
    """Where a volume's files lie."""

    DIR = "dir"
    """An empty folder on the node's disk."""
    MEMORY = "memory"
    """An empty folder in memory."""
    FILES = "files"
    """Given files, in memory, switched all at once."""
    HOST = "host"
    """A path of the node."""
    IMAGE = "image"
    """The files of an image, never written."""


class ActionKind(StrEnum):
    """What a probe or a hook does."""

    EXEC = "exec"
    HTTP = "http"
    TCP = "tcp"
    GRPC = "grpc"
    SLEEP = "sleep"


@dataclass(frozen=True, slots=True)
class File:
    """A file of a volume.

    Attributes:
        path: below the volume's folder.
        mode: permission bits.
        data: its content.
    """

    path: str
    mode: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Volume:
    """A volume.

    Attributes:
        name: as the pod names it.
        kind: where its files lie.
        size_bytes: the most it may hold; None for no limit.
        path: of the node, for `VolumeKind.HOST`; of the squashfs file, for `VolumeKind.IMAGE`.
        host_type: what must be at that path, in Kubernetes' words; empty: anything or nothing.
        files: for `VolumeKind.FILES`.
        gid: group that owns it and may write; None leaves it.
        is_group_kept: leave the group of what a `VolumeKind.HOST` has when its folder has it already.
    """

    name: str
    kind: VolumeKind
    size_bytes: int | None = None
    path: str | None = None
    host_type: str = ""
    files: tuple[File, ...] = ()
    gid: int | None = None
    is_group_kept: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return what supervisors of before know, too, unless the pod asks for more."""
        told = {field.name: to_json(getattr(self, field.name)) for field in fields(self)}
        return told if self.is_group_kept else {key: one for key, one in told.items() if key != "is_group_kept"}


@dataclass(frozen=True, slots=True)
class Variable:
    """An environment variable: a value, or a fact. Later ones of a name win."""

    name: str
    value: str | None = None
    fact: Fact | None = None


@dataclass(frozen=True, slots=True)
class Mount:
    """A volume in a container; `sub_path` is below the volume's folder."""

    volume: str
    path: str
    sub_path: str | None = None
    read_only: bool = False


@dataclass(frozen=True, slots=True)
class User:
    """Numbers, as the container sees them, that a process has."""

    uid: int
    gid: int
    groups: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Capabilities:
    """Names without `CAP_`, or `ALL`; they count in the container's own user namespace."""

    add: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Action:
    """What a probe or a hook does; a kind reads only its own fields.

    Attributes:
        kind: which of them.
        argv: program and arguments, run in the container.
        port: number.
        host: None for the pod's own address.
        path: of the URL, with its query.
        scheme: `http` or `https`.
        headers: names and values.
        service: gRPC's health service.
        seconds: how long to sleep.
    """

    kind: ActionKind
    argv: tuple[str, ...] = ()
    port: int | None = None
    host: str | None = None
    path: str = "/"
    scheme: str = "http"
    headers: tuple[tuple[str, str], ...] = ()
    service: str = ""
    seconds: int = 0


@dataclass(frozen=True, slots=True)
class Probe:
    """How often a container is asked; counts are of answers in a row.

    Attributes:
        action: the question.
        initial_delay_s: from the container's start.
        period_s: between two questions.
        timeout_s: no answer then is a failure.
        success: answers that make it well.
        failure: failures that make it ill.
        grace_s: from SIGTERM to SIGKILL when it failed; None for the pod's.
    """

    action: Action
    initial_delay_s: int = 0
    period_s: int = 10
    timeout_s: int = 1
    success: int = 1
    failure: int = 3
    grace_s: int | None = None

    def to_json(self) -> dict[str, Any]:
        """Return one flat object: the action's fields and the probe's."""
        own = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "action"}
        return {**to_json(self.action), **own}


@dataclass(frozen=True, slots=True)
class Container:
    """A container.

    Attributes:
        name: unique in the pod.
        image: path of the squashfs file.
        image_id: `NAME@DIGEST`, for the status.
        image_name: as the pod writes it.
        argv: the image's entrypoint and command already merged in.
        env: in order; the image's come first.
        cwd: None for the image's root.
        user: None where neither pod nor image names one.
        read_only: whether the root file system may not be written.
        tty: whether it gets a terminal.
        stdin: whether its input can be attached to.
        stdin_once: whether its input ends with the first who attaches.
        mounts: in an order in which each comes after those it lies in.
        startup: until it is well the others wait.
        liveness: when ill, the container is restarted.
        readiness: whether it shall get requests.
        post_start: run right after the start.
        pre_stop: run before SIGTERM.
        termination_path: file whose content tells why it ended.
        termination_policy: `File` or `FallbackToLogsOnError`.
        sidecar: an init container that runs on beside the others.
        memory_mib: a limit below the job's; None for the job's.
        mpi: run by srun, one process per task on all nodes of the job.
        mpi_flags: words for srun.
        mpi_home: whether its ranks see the user's home.
        capabilities: more or fewer than usual.
        escalates: whether set-user-ID programs may give more rights.
        seccomp: path of the profile that its system calls go through; None for none.
    """

    name: str
    image: str
    image_id: str
    argv: tuple[str, ...]
    env: tuple[Variable, ...] = ()
    cwd: str | None = None
    user: User | None = None
    read_only: bool = False
    tty: bool = False
    stdin: bool = False
    stdin_once: bool = False
    mounts: tuple[Mount, ...] = ()
    startup: Probe | None = None
    liveness: Probe | None = None
    readiness: Probe | None = None
    post_start: Action | None = None
    pre_stop: Action | None = None
    termination_path: str = "/dev/termination-log"
    termination_policy: str = "File"
    sidecar: bool = False
    memory_mib: int | None = None
    mpi: bool = False
    mpi_flags: tuple[str, ...] = ()
    mpi_home: bool = False
    capabilities: Capabilities = Capabilities()
    escalates: bool = True
    seccomp: str | None = None
    image_name: str | None = None


@dataclass(frozen=True, slots=True)
class Dns:
    """The pod's resolv.conf; no nameservers: the node's own."""

    nameservers: tuple[str, ...] = ()
    searches: tuple[str, ...] = ()
    options: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Host:
    """A line of the pod's /etc/hosts."""

    address: str
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """A pod.

    Attributes:
        uid: of the pod object.
        namespace: its namespace.
        name: its name.
        hostname: what the containers' kernel says.
        fqdn: the full name in /etc/hosts; None when the pod has no subdomain.
        host_network: whether it has the network, and the names, of its host.
        share_pid: whether the containers see each other's processes.
        restart_policy: `Always`, `OnFailure` or `Never`.
        grace_s: from SIGTERM to SIGKILL.
        dns: its resolver.
        hosts: more lines of /etc/hosts.
        volumes: all of the pod's.
        init: init containers and sidecars, in order.
        containers: the others.
    """

    uid: str
    namespace: str
    name: str
    hostname: str
    fqdn: str | None
    host_network: bool
    share_pid: bool
    restart_policy: str
    grace_s: int
    dns: Dns
    hosts: tuple[Host, ...]
    volumes: tuple[Volume, ...]
    init: tuple[Container, ...]
    containers: tuple[Container, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the plan as the supervisor reads it."""
        return {"schema": SCHEMA, **{field.name: to_json(getattr(self, field.name)) for field in fields(self)}}


def to_json(value: Any) -> Any:
    """Turn a part of a plan into what JSON knows; bytes become base64."""
    if isinstance(value, Probe | Volume):
        return value.to_json()
    if isinstance(value, Variable):
        return {"name": value.name, **({"fact": value.fact} if value.fact else {"value": value.value})}
    if is_dataclass(value):
        return {field.name: to_json(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, Mapping):
        return {key: to_json(one) for key, one in value.items()}
    return [to_json(one) for one in value] if isinstance(value, tuple) else value
