"""Accounts of a node: the cluster's users with their numbers, and those of daemons."""

from __future__ import annotations

import grp
import pwd
from collections.abc import Mapping
from typing import Any

from isthmus.node.host import Host


def bring_group(host: Host, entry: Mapping[str, Any], *, check: bool) -> bool:
    """Make a group, or give it its number; return whether it had to change."""
    gid = ["--gid", str(entry["gid"])] if "gid" in entry else []
    try:
        found = grp.getgrnam(entry["name"])
    except KeyError:
        if not check:
            host.command("groupadd", *gid, entry["name"])
        return True
    if not gid or found.gr_gid == entry["gid"]:
        return False
    if not check:
        host.command("groupmod", *gid, entry["name"])
    return True


def bring_user(host: Host, entry: Mapping[str, Any], *, check: bool) -> bool:
    """Create or update a user; return whether anything changed."""
    name = entry["name"]
    wanted = ["--uid", str(entry["uid"]), "--gid", name, "--shell", entry["shell"], "--comment", entry["comment"]]
    try:
        found: pwd.struct_passwd | None = pwd.getpwnam(name)
    except KeyError:
        found = None
    same_password = _password(host, name) == entry["password"]
    if found is not None and _is_right(found, entry) and same_password:
        return False
    if check:
        return True
    if found is None:
        host.command("useradd", "--no-create-home", *wanted, "--groups", ",".join(entry["groups"]), name)
    else:
        host.command("usermod", *wanted, "--append", "--groups", ",".join(entry["groups"]), name)
    if not same_password:
        # Not as an argument, which the host's other processes see.
        host.command("chpasswd", "--encrypted", text=f"{name}:{entry['password']}\n")
    return True


def bring_daemon(host: Host, name: str, *, check: bool) -> bool:
    """Make the account of a daemon; return whether there was none."""
    try:
        pwd.getpwnam(name)
    except KeyError:
        if not check:
            nobody = ("--home-dir", "/nonexistent", "--shell", "/usr/sbin/nologin", "--user-group")
            host.command("useradd", "--system", "--no-create-home", *nobody, name)
        return True
    return False


def _is_right(found: pwd.struct_passwd, entry: Mapping[str, Any]) -> bool:
    groups = {group.gr_name for group in grp.getgrall() if found.pw_name in group.gr_mem}
    own = grp.getgrgid(found.pw_gid).gr_name
    actual = found.pw_uid, own, found.pw_shell, found.pw_gecos
    return actual == (entry["uid"], entry["name"], entry["shell"], entry["comment"]) and {*entry["groups"]} <= groups


def _password(host: Host, name: str) -> str:
    lines = (line.split(":") for line in host.tree.text("/etc/shadow").splitlines())
    return next((fields[1] for fields in lines if fields[0] == name and len(fields) > 1), "")
