"""The plan of a pod as the kubelet sends it, read strictly: plain dicts, but with every key and of the right types.

What is unknown or missing is refused as a whole, before anything of the pod starts. (No postponed annotations here:
the check reads them, on Python 3.9 too.)
"""

from typing import Any, Optional, TypedDict, Union, cast, get_args, get_origin, get_type_hints

SCHEMA = 1


class PlanError(Exception):
    """The kubelet sent what this supervisor does not understand."""


class Keyed(TypedDict):
    """A file of a volume: path inside it, permission bits, content in base64."""

    path: str
    mode: int
    data: str


class Volume(TypedDict):
    """kind: dir, memory, files, host or image; path: of the last two; host_type: of a hostPath; gid: fsGroup."""

    name: str
    kind: str
    size_bytes: Optional[int]
    path: Optional[str]
    host_type: str
    files: list[Keyed]
    gid: Optional[int]
    is_group_kept: bool


class Action(TypedDict):
    """kind: exec, http, tcp, grpc or sleep; a kind reads only its own keys."""

    kind: str
    argv: list[str]
    port: Optional[int]
    host: Optional[str]
    path: str
    scheme: str
    headers: list[list[str]]
    service: str
    seconds: int


class Probe(Action):
    """An action that is asked again and again; seconds and counts as in Kubernetes."""

    initial_delay_s: int
    period_s: int
    timeout_s: int
    success: int
    failure: int
    grace_s: Optional[int]


class User(TypedDict):
    """Whom a container runs as."""

    uid: int
    gid: int
    groups: list[int]


class Capabilities(TypedDict):
    """Names without `CAP_`, or `ALL`."""

    add: list[str]
    drop: list[str]


class Mount(TypedDict):
    """Where a container sees a volume, or a part of it."""

    volume: str
    path: str
    sub_path: Optional[str]
    read_only: bool


class Container(TypedDict):
    """env: {name, value} or {name, fact}; memory_mib: a limit of its own; mpi: srun runs it on all nodes of the job.

    mpi_home: its ranks see the user's home; image_name: as the pod writes it; seccomp: path of a profile.
    """

    name: str
    image: str
    image_id: str
    image_name: Optional[str]
    argv: list[str]
    env: list[dict[str, str]]
    cwd: Optional[str]
    user: Optional[User]
    read_only: bool
    tty: bool
    stdin: bool
    stdin_once: bool
    mounts: list[Mount]
    startup: Optional[Probe]
    liveness: Optional[Probe]
    readiness: Optional[Probe]
    post_start: Optional[Action]
    pre_stop: Optional[Action]
    termination_path: str
    termination_policy: str
    sidecar: bool
    memory_mib: Optional[int]
    mpi: bool
    mpi_flags: list[str]
    mpi_home: bool
    capabilities: Capabilities
    escalates: bool
    seccomp: Optional[str]


class Dns(TypedDict):
    """resolv.conf of the pod."""

    nameservers: list[str]
    searches: list[str]
    options: list[str]


class Host(TypedDict):
    """A line of /etc/hosts."""

    address: str
    names: list[str]


class Plan(TypedDict):
    """A whole pod."""

    schema: int
    uid: str
    namespace: str
    name: str
    hostname: str
    fqdn: Optional[str]
    host_network: bool
    share_pid: bool
    restart_policy: str
    grace_s: int
    dns: Dns
    hosts: list[Host]
    volumes: list[Volume]
    init: list[Container]
    containers: list[Container]


_CHOICES = {
    (Plan, "restart_policy"): {"Always", "OnFailure", "Never"},
    (Volume, "kind"): {"dir", "memory", "files", "host", "image"},
    (Probe, "kind"): {"exec", "http", "tcp", "grpc"},
    (Action, "kind"): {"exec", "http", "tcp", "sleep"},
    (Container, "termination_policy"): {"File", "FallbackToLogsOnError"},
}
# What a kubelet of before does not say, and what it means by that: it may outlive an upgrade of the nodes.
_LATER: dict[Any, dict[str, Any]] = {
    Volume: {"is_group_kept": False},
    Container: {"seccomp": None, "image_name": None, "mpi_home": False},
}


def creating(plan: Plan) -> str:
    """Return why a container waits that is about to start, in the official kubelet's words."""
    return "PodInitializing" if plan["init"] else "ContainerCreating"


def read(value: Any) -> Plan:
    """Check a plan.

    Raises:
        PlanError: names the place that is wrong.
    """
    _check(value, Plan, "plan")
    plan = cast(Plan, value)
    if plan["schema"] != SCHEMA:
        raise PlanError(f"a plan of schema {plan['schema']}; this supervisor knows {SCHEMA}")
    known = {volume["name"] for volume in plan["volumes"]}
    for container in [*plan["init"], *plan["containers"]]:
        _check_mounts(container, known)
    return plan


def container(value: Any, volumes: list[Volume]) -> Container:
    """Check one container that joins a running pod.

    Raises:
        PlanError: names the place that is wrong.
    """
    _check(value, Container, "container")
    found = cast(Container, value)
    _check_mounts(found, {volume["name"] for volume in volumes})
    return found


def volumes(value: Any) -> list[Volume]:
    """Check volumes that have changed.

    Raises:
        PlanError: names the place that is wrong.
    """
    _check(value, list[Volume], "volumes")
    return cast("list[Volume]", value)


def _check_mounts(container: Container, known: set[str]) -> None:
    missing = {mount["volume"] for mount in container["mounts"]} - known
    if missing:
        raise PlanError(f"container {container['name']} mounts {sorted(missing)}, which are no volumes of the pod")


def _check(value: Any, wanted: Any, place: str) -> None:
    origin, inner = get_origin(wanted), get_args(wanted)
    if origin is Union:
        if value is not None:
            _check(value, inner[0], place)
    elif origin is list:
        _expect(isinstance(value, list), value, "a list", place)
        for index, item in enumerate(value):
            _check(item, inner[0], f"{place}[{index}]")
    elif origin is dict:
        texts = isinstance(value, dict) and all(isinstance(word, str) for pair in value.items() for word in pair)
        _expect(texts, value, "an object of strings", place)
    elif wanted in (str, int, bool):
        _expect(type(value) is wanted, value, wanted.__name__, place)
    else:
        _check_object(value, wanted, place)


def _check_object(value: Any, wanted: Any, place: str) -> None:
    _expect(isinstance(value, dict), value, "an object", place)
    hints = get_type_hints(wanted)
    value.update({key: usual for key, usual in _LATER.get(wanted, {}).items() if key not in value})
    wrong = set(value) ^ set(hints)
    if wrong:
        raise PlanError(f"{place}: unknown or missing: {', '.join(sorted(map(str, wrong)))}")
    for key, hint in hints.items():
        _check(value[key], hint, f"{place}.{key}")
        choices = _CHOICES.get((wanted, key))
        if choices is not None and value[key] not in choices:
            raise PlanError(f"{place}.{key} is {value[key]!r}, not one of {', '.join(sorted(choices))}")


def _expect(right: bool, value: Any, wanted: str, place: str) -> None:
    # Never the value itself: it may be a secret.
    if not right:
        raise PlanError(f"{place} is {type(value).__name__}, not {wanted}")
