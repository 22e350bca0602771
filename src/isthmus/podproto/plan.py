"""The plan: everything that a pod's supervisor runs. The kubelet makes it; the supervisor needs nothing else.

Both sides have these types, one writer (`to_json`) and one strict reader (`read`): what is unknown, missing or of
another type is refused as a whole, before anything of the pod starts. The types are named tuples because a supervisor
starts in each pod, and a dataclass takes a millisecond to make.

Texts in `argv` and in values of variables may hold `$(NAME)` for what only the compute node knows (see `Fact`);
every other `$(` and `$$` in them is escaped by Kubernetes' rule, `$$` for `$` (`expansion`).

A field that is added goes into `_LATER`: it is written where it is not at its default, and a plan without it is read.
So the other side may be of the version before, unless the pod asks for what that cannot do.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterable
from enum import StrEnum
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, NamedTuple, get_args, get_origin, get_type_hints

from isthmus.podproto.reasons import Reason
from isthmus.podproto.versions import SPOKEN


class PlanError(Exception):
    """The kubelet sent what this supervisor does not understand."""


class Fact(StrEnum):
    """What only the compute node knows; lists are separated by commas."""

    POD_IP = "pod_ip"
    POD_IPS = "pod_ips"
    HOST_IP = "host_ip"
    HOST_IPS = "host_ips"


class ActionKind(StrEnum):
    """What a probe or a hook does."""

    EXEC = "exec"
    HTTP = "http"
    TCP = "tcp"
    GRPC = "grpc"
    SLEEP = "sleep"


class File(NamedTuple):
    """A file of a volume.

    Attributes:
        path: below the volume's folder.
        mode: permission bits.
        data: its content.
    """

    path: str
    mode: int
    data: bytes


class Volume(NamedTuple):
    """A volume.

    Attributes:
        name: as the pod names it.
        kind: where its files lie; what there is, each side says in its `volumes`.
        size_bytes: the most it may hold; None for no limit.
        path: of the node, where the kind has one.
        host_type: what must be at that path, in Kubernetes' words; empty: anything or nothing.
        files: what it holds, where that is given.
        gid: group that owns it and may write; None leaves it.
        is_group_kept: leave the group of what it has when its folder has it already.
        options: what only its kind knows.
    """

    name: str
    kind: str
    size_bytes: int | None = None
    path: str | None = None
    host_type: str = ""
    files: tuple[File, ...] = ()
    gid: int | None = None
    is_group_kept: bool = False
    options: tuple[tuple[str, str], ...] = ()


class Variable(NamedTuple):
    """An environment variable: a value, or a fact. Later ones of a name win."""

    name: str
    value: str | None = None
    fact: Fact | None = None


class Propagation(StrEnum):
    """Whether what is mounted in a volume reaches the pod's other containers, in Kubernetes' words."""

    NONE = "None"
    RECEIVED = "HostToContainer"
    BOTH = "Bidirectional"


class Mount(NamedTuple):
    """Where a container sees a volume, or, by `sub_path`, a part of it."""

    volume: str
    path: str
    sub_path: str | None = None
    read_only: bool = False
    propagation: Propagation = Propagation.NONE


class User(NamedTuple):
    """Numbers, as the container sees them, that a process has."""

    uid: int
    gid: int
    groups: tuple[int, ...] = ()


class Capabilities(NamedTuple):
    """Names without `CAP_`, or `ALL`; they count in the container's own user namespace."""

    add: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()


class Action(NamedTuple):
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


class Probe(NamedTuple):
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


class Container(NamedTuple):
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
        readiness: whether it should get requests.
        post_start: run right after the start.
        pre_stop: run before SIGTERM.
        termination_path: file whose content says why it ended.
        termination_policy: `File` or `FallbackToLogsOnError`.
        sidecar: an init container that runs on beside the others.
        memory_mib: a limit below the job's; None for the job's.
        mpi: run by srun, one process per task on all nodes of the job.
        mpi_flags: words for srun.
        mpi_home: whether its ranks see the user's home.
        mpi_wrapper: words of argv before the ranks' program; they run once, on the first node.
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
    termination_policy: Literal["File", "FallbackToLogsOnError"] = "File"
    sidecar: bool = False
    memory_mib: int | None = None
    mpi: bool = False
    mpi_flags: tuple[str, ...] = ()
    mpi_home: bool = False
    mpi_wrapper: int = 0
    capabilities: Capabilities = Capabilities()
    escalates: bool = True
    seccomp: str | None = None
    image_name: str | None = None


class Dns(NamedTuple):
    """The pod's resolv.conf; no nameservers: the node's own."""

    nameservers: tuple[str, ...] = ()
    searches: tuple[str, ...] = ()
    options: tuple[str, ...] = ()


class Host(NamedTuple):
    """A line of the pod's /etc/hosts."""

    address: str
    names: tuple[str, ...]


class Plan(NamedTuple):
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
    restart_policy: Literal["Always", "OnFailure", "Never"]
    grace_s: int
    dns: Dns
    hosts: tuple[Host, ...]
    volumes: tuple[Volume, ...]
    init: tuple[Container, ...]
    containers: tuple[Container, ...]


# What came after the first release, by the type that has it; see above.
_LATER: dict[type, frozenset[str]] = {
    Volume: frozenset({"is_group_kept", "options"}),
    Mount: frozenset({"propagation"}),
    Container: frozenset({"seccomp", "image_name", "mpi_home", "mpi_wrapper"}),
}
_PROBES = frozenset(ActionKind) - {ActionKind.SLEEP}
_HOOKS = frozenset(ActionKind) - {ActionKind.GRPC}


def creating(plan: Plan) -> Reason:
    """Return why a container waits that is about to start, in the official kubelet's words."""
    return Reason.INITIALIZING if plan.init else Reason.CREATING


def to_json(value: Any, version: int = SPOKEN[-1]) -> Any:
    """Return a plan, or a part of one, as the supervisor reads it; bytes become base64.

    Args:
        value: the part.
        version: what both sides speak, see `versions`.
    """
    if isinstance(value, Plan):
        return {"schema": version, **_object_json(value)}
    if isinstance(value, Probe):
        rest = _object_json(value)
        return {**rest.pop("action"), **rest}
    if isinstance(value, Variable):
        return {"name": value.name, **({"fact": value.fact} if value.fact else {"value": value.value})}
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if hasattr(value, "_fields"):
        return _object_json(value)
    return [to_json(one) for one in value] if isinstance(value, tuple) else value


def read(value: Any) -> Plan:
    """Read a plan.

    Raises:
        PlanError: names the place that is wrong.
    """
    _expect(isinstance(value, dict), value, "an object", "plan")
    rest = dict(value)
    schema = rest.pop("schema", None)
    _expect(type(schema) is int, schema, "int", "plan.schema")
    if schema not in SPOKEN:
        raise PlanError(f"a plan of schema {schema}; this supervisor knows {', '.join(map(str, SPOKEN))}")
    plan: Plan = _read(rest, Plan, "plan")
    for one in (*plan.init, *plan.containers):
        _check_mounts(one, plan.volumes)
    return plan


def container(value: Any, volumes: Iterable[Volume]) -> Container:
    """Read one container that joins a running pod.

    Raises:
        PlanError: names the place that is wrong.
    """
    found: Container = _read(value, Container, "container")
    _check_mounts(found, volumes)
    return found


def volumes(value: Any) -> tuple[Volume, ...]:
    """Read volumes that have changed.

    Raises:
        PlanError: names the place that is wrong.
    """
    found: tuple[Volume, ...] = _read(value, tuple[Volume, ...], "volumes")
    return found


def _object_json(value: Any) -> dict[str, Any]:
    later = _LATER.get(type(value), frozenset())
    usual = value._field_defaults
    said = (name for name in value._fields if name not in later or getattr(value, name) != usual[name])
    return {name: to_json(getattr(value, name)) for name in said}


def _check_mounts(container: Container, volumes: Iterable[Volume]) -> None:
    missing = {mount.volume for mount in container.mounts} - {volume.name for volume in volumes}
    if missing:
        raise PlanError(f"container {container.name} mounts {sorted(missing)}, which are no volumes of the pod")


def _read(value: Any, wanted: Any, place: str) -> Any:
    if wanted in _READERS:
        return _READERS[wanted](value, place)
    origin, inner = get_origin(wanted), get_args(wanted)
    if origin is UnionType:
        return None if value is None and NoneType in inner else _read(value, inner[0], place)
    if origin is Literal:
        return _choice(value, inner, place)
    if origin is tuple:
        _expect(isinstance(value, list), value, "a list", place)
        if inner[-1] is not Ellipsis and len(value) != len(inner):
            raise PlanError(f"{place} has {len(value)} parts, not {len(inner)}")
        return tuple(_read(item, inner[0], f"{place}[{index}]") for index, item in enumerate(value))
    if wanted in (str, int, bool):
        _expect(type(value) is wanted, value, wanted.__name__, place)
        return value
    if issubclass(wanted, StrEnum):
        return wanted(_choice(value, tuple(wanted), place))
    return _read_object(value, wanted, place)


def _read_object(value: Any, wanted: Any, place: str) -> Any:
    _expect(isinstance(value, dict), value, "an object", place)
    hints = _hints(wanted)
    missing = hints.keys() - value.keys() - _LATER.get(wanted, frozenset())
    if wrong := missing | (value.keys() - hints.keys()):
        raise PlanError(f"{place}: unknown or missing: {', '.join(sorted(map(str, wrong)))}")
    return wanted(
        **{name: _read(value[name], hint, f"{place}.{name}") for name, hint in hints.items() if name in value}
    )


def _read_variable(value: Any, place: str) -> Variable:
    _expect(isinstance(value, dict), value, "an object", place)
    wrong = value.keys() ^ {"name", "fact" if "fact" in value else "value"}
    if wrong:
        raise PlanError(f"{place}: unknown or missing: {', '.join(sorted(map(str, wrong)))}")
    return Variable(**{key: _read(one, Fact if key == "fact" else str, f"{place}.{key}") for key, one in value.items()})


def _read_bytes(value: Any, place: str) -> bytes:
    _expect(isinstance(value, str), value, "str", place)
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError) as error:
        raise PlanError(f"{place} is no base64") from error


def _read_action(value: Any, place: str, kinds: frozenset[ActionKind] = _HOOKS) -> Action:
    _expect(isinstance(value, dict), value, "an object", place)
    action: Action = _read_object(value, Action, place)
    _choice(action.kind.value, kinds, f"{place}.kind")
    return action


def _read_probe(value: Any, place: str) -> Probe:
    _expect(isinstance(value, dict), value, "an object", place)
    action = _read_action({key: value[key] for key in Action._fields if key in value}, place, _PROBES)
    hints = _hints(Probe)
    rest = {key: one for key, one in value.items() if key not in Action._fields}
    if wrong := rest.keys() ^ (hints.keys() - {"action"}):
        raise PlanError(f"{place}: unknown or missing: {', '.join(sorted(map(str, wrong)))}")
    return Probe(action, **{key: _read(one, hints[key], f"{place}.{key}") for key, one in rest.items()})


_READERS: dict[Any, Callable[[Any, str], Any]] = {
    Variable: _read_variable,
    bytes: _read_bytes,
    Action: _read_action,
    Probe: _read_probe,
}


@cache
def _hints(wanted: type) -> dict[str, Any]:
    return get_type_hints(wanted)


def _choice(value: Any, choices: Iterable[str], place: str) -> str:
    _expect(isinstance(value, str), value, "str", place)
    if value not in choices:
        raise PlanError(f"{place} is {value!r:.40}, not one of {', '.join(sorted(choices))}")
    return str(value)


def _expect(right: bool, value: Any, wanted: str, place: str) -> None:
    # Never the value itself: it may be a secret.
    if not right:
        raise PlanError(f"{place} is {type(value).__name__}, not {wanted}")
