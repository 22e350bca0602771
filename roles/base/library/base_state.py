"""The module `base_state`: all that role base must know of a host before it changes anything; it changes nothing.

It names the accounts that are not as desired, so that no password's hash is sent to the deployer. Where it cannot
compare, it reports a difference: the module that creates accounts then compares itself.
"""

from __future__ import annotations

import grp
import os
import pwd
import stat
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from ansible.module_utils.account_options import OPTIONS
from ansible.module_utils.basic import AnsibleModule

CLUSTER = Path("/etc/isthmus/cluster.json")
HOSTNAME = Path("/etc/hostname")
LOGINS = Path("/etc/pam.d/sshd")
SHADOW = Path("/etc/shadow")
FUSE = Path("/dev/fuse")
ARGUMENTS = {**OPTIONS, "program": {"type": "path", "default": ""}}


def text(path: Path) -> str:
    """A file's text, "" for none."""
    return path.read_text() if path.is_file() else ""


def passwords() -> dict[str, str]:
    """What the host compares each account's password with."""
    lines = (line.split(":") for line in text(SHADOW).splitlines())
    return {fields[0]: fields[1] for fields in lines if len(fields) > 1}


def group_is_right(wanted: Mapping[str, Any]) -> bool:
    """Return whether a group is there, with its number if it has one."""
    try:
        found = grp.getgrnam(wanted["name"])
    except KeyError:
        return False
    return wanted["gid"] in (None, found.gr_gid)


def user_is_right(wanted: Mapping[str, Any], hashes: Mapping[str, str]) -> bool:
    """Return whether an account is as desired: in these groups and in no other."""
    name = wanted["name"]
    try:
        found, primary = pwd.getpwnam(name), grp.getgrnam(name)
    except KeyError:
        return False
    members = {group.gr_name for group in grp.getgrall() if name in group.gr_mem}
    return (
        (found.pw_uid, found.pw_gid) == (wanted["uid"], primary.gr_gid)
        and (found.pw_shell, found.pw_gecos) == (wanted["shell"], wanted["comment"])
        and members - {name} == {*wanted["groups"]} - {name}
        and hashes.get(name) == wanted["password"]
    )


def is_known(name: str) -> bool:
    """Return whether there is an account of a name."""
    try:
        return bool(pwd.getpwnam(name))
    except KeyError:
        return False


def fuse_is_open() -> bool:
    """Return whether /dev/fuse is the device, for everybody."""
    try:
        found = FUSE.stat()
    except OSError:
        return False
    return stat.S_ISCHR(found.st_mode) and found.st_mode & 0o777 == 0o666


def named(each: Iterable[dict[str, Any]], is_right: Callable[[dict[str, Any]], bool]) -> list[str]:
    """Names of those that are not right."""
    return [wanted["name"] for wanted in each if not is_right(wanted)]


def state(asked: Mapping[str, Any]) -> dict[str, Any]:
    """All of it, by name."""
    hashes = passwords()
    return {
        "cluster": text(CLUSTER),
        "names": sorted({text(HOSTNAME).strip(), os.uname().nodename}),
        "logins": text(LOGINS),
        "fuse": fuse_is_open(),
        "has_program": bool(asked["program"]) and Path(asked["program"]).exists(),
        "groups": named(asked["groups"], group_is_right),
        "users": named(asked["users"], lambda user: user_is_right(user, hashes)),
        "leaving": [name for name in asked["absent"] if is_known(name)],
    }


def main() -> None:
    """Look."""
    module = AnsibleModule(ARGUMENTS, supports_check_mode=True)
    module.exit_json(changed=False, **state(module.params))


if __name__ == "__main__":
    main()
