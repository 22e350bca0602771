"""Identity of a container's processes: user, groups, capabilities, seccomp profile.

All ids are subordinate ids of the user: root in a container is unprivileged outside, and capabilities
apply in the container's user namespace only.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from isthmus.kubelet.pods.unready import UnreadyError
from isthmus.model.image_accounts import Account
from isthmus.model.pod_inputs import Image, Object
from isthmus.podproto.plan import Capabilities, User
from isthmus.podproto.reasons import Reason

ALL = "ALL"
# The profile that podman uses (Debian: golang-github-containers-common), and where a user's own ones are.
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
    """Return a container's security context: the pod's, overridden by its own."""
    own = {key: value for key, value in (container.get("securityContext") or {}).items() if value is not None}
    return {**(pod["spec"].get("securityContext") or {}), **own}


def user(pod: Object, container: Object, image: Image) -> User | None:
    """Return the user and groups of a container; None if neither pod nor image sets a user.

    Group and further groups are those of the image's /etc/passwd and /etc/group, as container runtimes have them,
    unless the pod names others (Kubernetes, "Configure a Security Context").

    Raises:
        UnreadyError: it must not be root and is, or may be; or the image names a user or group it does not have.
    """
    context = security(pod, container)
    account, gid, groups = _account(context, image, container["name"]), context.get("runAsGroup"), _groups(pod)
    if context.get("runAsNonRoot") and (account is None or account.uid == 0):
        who = "the pod's runAsUser" if context.get("runAsUser") is not None else "its image"
        message = f"container has runAsNonRoot and {who} is root; set runAsUser to a number above 0"
        raise UnreadyError(Reason.CONFIG, message, container["name"])
    if account is None and gid is None and not groups:
        return None
    who_runs = account or Account("", 0, 0, "")
    is_strict = (pod["spec"].get("securityContext") or {}).get("supplementalGroupsPolicy") == "Strict"
    listed = () if is_strict else image.accounts.members.get(who_runs.name, ())
    return User(who_runs.uid, _number(gid, who_runs.gid), tuple(dict.fromkeys((*groups, *listed))))


def home(pod: Object, container: Object, image: Image) -> str:
    """Return the home of the container's user in the image's /etc/passwd; "" if it has none."""
    account = _account(security(pod, container), image, container["name"]) or image.accounts.numbered(0)
    return account.home if account else ""


def capabilities(container: Object) -> Capabilities:
    """Return added and dropped capabilities, sorted and without prefix; a privileged container has all."""
    if is_privileged(container):
        return Capabilities(add=(ALL,))
    asked = (container.get("securityContext") or {}).get("capabilities") or {}
    return Capabilities(capability_names(asked.get("add")), capability_names(asked.get("drop")))


def is_privileged(container: Object) -> bool:
    """Return whether a container is privileged, which here means within the pod's user namespace."""
    return bool((container.get("securityContext") or {}).get("privileged"))


def seccomp(pod: Object, container: Object, home: str) -> str | None:
    """Return the path of a container's seccomp profile; None where it has none, as one that is privileged.

    Args:
        pod: the pod.
        container: one of its containers.
        home: of the user, with the user's own profiles.
    """
    profile = security(pod, container).get("seccompProfile") or {}
    if is_privileged(container):
        return None
    return {"RuntimeDefault": DEFAULT_PROFILE, "Localhost": f"{home}/{PROFILES}/{profile.get('localhostProfile')}"}.get(
        profile.get("type", "Unconfined")
    )


def capability_names(names: list[str] | None) -> tuple[str, ...]:
    """Write capabilities as the kernel's manual does, without `CAP_`."""
    return tuple(sorted({name.upper().removeprefix("CAP_") for name in names or ()}))


def _groups(pod: Object) -> tuple[int, ...]:
    context = pod["spec"].get("securityContext") or {}
    listed = [*(context.get("supplementalGroups") or ()), context.get("fsGroup")]
    return tuple(dict.fromkeys(number for number in listed if number is not None))


def _account(context: dict[str, Any], image: Image, container: str) -> Account | None:
    """Return the account that the pod or the image names; None where neither does."""
    if (uid := context.get("runAsUser")) is not None:
        return image.accounts.numbered(uid) or Account("", uid, 0, "")
    name, _, group = image.user.partition(":")
    if not name:
        return None
    known = image.accounts.named(name)
    if known is None and name.isdecimal():
        known = image.accounts.numbered(int(name)) or Account("", int(name), 0, "")
    if known is None:
        raise _unknown("user", name, "/etc/passwd; set runAsUser", container)
    if group and not group.isdecimal() and group not in image.accounts.groups:
        raise _unknown("group", group, "/etc/group; set runAsGroup", container)
    if not group:
        return known
    return replace(known, gid=image.accounts.groups[group] if group in image.accounts.groups else int(group))


def _unknown(what: str, name: str, where: str, container: str) -> UnreadyError:
    return UnreadyError(Reason.CONFIG, f"the image's {what} {name!r} is not in its {where} to a number", container)


def _number(stated: object, fallback: int) -> int:
    return stated if isinstance(stated, int) else fallback
