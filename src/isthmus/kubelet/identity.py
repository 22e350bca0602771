"""Who a container's processes are: user, groups, capabilities.

All numbers are those of the user's own subordinate ids: root in a container is no root outside, and capabilities
count in the container's user namespace only.
"""

from __future__ import annotations

from typing import Any

from isthmus.kubelet.unready import Unready, UnreadyError
from isthmus.model.plan import Capabilities, User
from isthmus.model.pod_inputs import Image, Object

ALL = "ALL"
# The profile that podman and its kin bring (Debian: golang-github-containers-common), and where a user puts his own.
DEFAULT_PROFILE = "/usr/share/containers/seccomp.json"
PROFILES = ".isthmus/seccomp"
# What Docker and containerd give a container, and SYS_PTRACE, which `kubectl debug` asks for and which is about the
# pod's own processes; who names another means the node, where nobody here has it.
CAPABILITIES = frozenset(
    {
        "AUDIT_WRITE",
        "CHOWN",
        "DAC_OVERRIDE",
        "FOWNER",
        "FSETID",
        "KILL",
        "MKNOD",
        "NET_BIND_SERVICE",
        "NET_RAW",
        "SETFCAP",
        "SETGID",
        "SETPCAP",
        "SETUID",
        "SYS_CHROOT",
        "SYS_PTRACE",
    }
)


def security(pod: Object, container: Object) -> dict[str, Any]:
    """Return what holds for a container: the pod's settings under its own."""
    own = {key: value for key, value in (container.get("securityContext") or {}).items() if value is not None}
    return {**(pod["spec"].get("securityContext") or {}), **own}


def user(pod: Object, container: Object, image: Image) -> User | None:
    """Return who a container runs as; None where nobody says.

    Raises:
        UnreadyError: it must not be root and is, or may be; or the image names a user it does not have.
    """
    context = security(pod, container)
    uid, gid = context.get("runAsUser"), context.get("runAsGroup")
    own = None if uid is not None else _image_user(image, container["name"])
    groups = _groups(pod)
    if context.get("runAsNonRoot") and (uid if own is None else own[0]) in (0, None):
        who = "the pod's runAsUser" if uid is not None else "its image"
        message = f"container has runAsNonRoot and {who} is root; set runAsUser to a number above 0"
        raise UnreadyError(Unready.CONFIG, message, container["name"])
    if uid is None and gid is None and own is None and not groups:
        return None
    fallback = own or (0, 0)
    return User(_number(uid, fallback[0]), _number(gid, fallback[1]), groups)


def capabilities(container: Object) -> Capabilities:
    """Return what is added and dropped, without the prefix and sorted; a privileged container has all there are."""
    if is_privileged(container):
        return Capabilities(add=(ALL,))
    asked = (container.get("securityContext") or {}).get("capabilities") or {}
    return Capabilities(capability_names(asked.get("add")), capability_names(asked.get("drop")))


def is_privileged(container: Object) -> bool:
    """Tell whether a container asks for all rights; it gets those that the pod's own user namespace has."""
    return bool((container.get("securityContext") or {}).get("privileged"))


def seccomp(pod: Object, container: Object, home: str) -> str | None:
    """Return the path of a container's seccomp profile; None where it has none, as one that is privileged.

    Args:
        pod: the pod.
        container: one of its containers.
        home: of the user; his own profiles lie in it.
    """
    told = security(pod, container).get("seccompProfile") or {}
    if is_privileged(container):
        return None
    return {"RuntimeDefault": DEFAULT_PROFILE, "Localhost": f"{home}/{PROFILES}/{told.get('localhostProfile')}"}.get(
        told.get("type", "Unconfined")
    )


def capability_names(names: list[str] | None) -> tuple[str, ...]:
    """Write capabilities as the kernel's manual does, without `CAP_`."""
    return tuple(sorted({name.upper().removeprefix("CAP_") for name in names or ()}))


def _groups(pod: Object) -> tuple[int, ...]:
    context = pod["spec"].get("securityContext") or {}
    listed = [*(context.get("supplementalGroups") or ()), context.get("fsGroup")]
    return tuple(dict.fromkeys(number for number in listed if number is not None))


def _image_user(image: Image, container: str) -> tuple[int, int] | None:
    name, _, group = image.user.partition(":")
    if not name:
        return None
    known = (int(name), 0) if name.isdigit() else image.users.get(name)
    if known is None:
        message = f"the image's user {name!r} is not in its /etc/passwd; set runAsUser to a number"
        raise UnreadyError(Unready.CONFIG, message, container)
    return known[0], int(group) if group.isdigit() else known[1]


def _number(stated: object, fallback: int) -> int:
    return stated if isinstance(stated, int) else fallback
