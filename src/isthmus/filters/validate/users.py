"""Users: unique names and numbers, and passwords only as hashes.

No message repeats a password: it would stand in logs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from isthmus.filters.validate.site import Site

UID_MIN = 1000
RESERVED = ("root", "slurm", "munge", "nobody")
_NAME = re.compile(r"[a-z_][a-z0-9_-]{0,31}")
_GROUP = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_HASH = re.compile(r"\$(5|6|7|y|gy|2[aby])\$[A-Za-z0-9./$=,]{20,}")
# Options may come first, sshd(8).
_KEY = re.compile(
    r"(^|\s)(ssh-(ed25519|rsa)|ecdsa-sha2-nistp\d+|sk-[a-z0-9-]+@openssh\.com)\s+AAAA[A-Za-z0-9+/]+=*(\s|$)"
)
_LOCKED = ("!", "*", "!!")
_HOW_TO_HASH = "set password_hash to what `mkpasswd --method=yescrypt` prints, or leave the password out"


def user_problems(site: Site) -> Iterator[str]:
    """Yield what is wrong with base_users, and passwords in clear text anywhere in the inventory."""
    users = site.shared_list("base_users")
    for user in users:
        yield from _name(site, user)
        yield from _uid(site, user)
        yield from _password(site, user)
        yield from _keys(site, user)
    yield from _admin_groups(site)
    yield from _doubles(site, users, "name")
    yield from _doubles(site, users, "uid")
    yield from _clear_text(site, users)


def _name(site: Site, user: dict[str, Any]) -> Iterator[str]:
    name = str(user.get("name", ""))
    if not _NAME.fullmatch(name):
        yield site.problem(
            f"user name {name!r} is not POSIX",
            "use at most 32 of a-z, 0-9, '_' and '-', beginning with a letter or '_'",
            "name",
            "base_users",
            value=name,
        )
    elif name in RESERVED:
        yield site.problem(
            f"user name {name!r} is the system's", "choose another name", "name", "base_users", value=name
        )


def _uid(site: Site, user: dict[str, Any]) -> Iterator[str]:
    uid = user.get("uid")
    if not isinstance(uid, int) or uid < UID_MIN:
        yield site.problem(
            f"user {user.get('name')} has uid {uid!r}",
            f"give a whole number of at least {UID_MIN}; lower ones are the system's",
            "uid",
            "base_users",
            value=uid,
        )


def _password(site: Site, user: dict[str, Any]) -> Iterator[str]:
    given = user.get("password_hash")
    if given and given not in _LOCKED and not _HASH.fullmatch(str(given)):
        yield site.problem(
            f"password_hash of user {user.get('name')} is no hash", _HOW_TO_HASH, "password_hash", value=given
        )


def _admin_groups(site: Site) -> Iterator[str]:
    everybody = site.shared("base_users_group") or "cluster-users"
    for group in site.shared("base_admin_groups") or []:
        if not isinstance(group, str) or not _GROUP.fullmatch(group):
            yield site.problem(
                f"{group!r} in base_admin_groups is no group",
                "give names as `getent group` has them",
                "base_admin_groups",
            )
        elif group == everybody:
            yield site.problem(
                f"all users are in {group}, which is in base_admin_groups",
                "take it out, or set base_users_on_controller: true",
                "base_admin_groups",
            )


def _keys(site: Site, user: dict[str, Any]) -> Iterator[str]:
    # Unknown values are checked later.
    keys = [key for key in user.get("ssh_keys") or [] if isinstance(key, str)]
    lines = [line.strip() for key in keys for line in key.splitlines()]
    # Never shown: it may be a private key.
    wrong = [line for line in lines if line and not line.startswith("#") and not _KEY.search(line)]
    if wrong:
        yield site.problem(
            f"ssh_keys of user {user.get('name')} has a line that is no public key",
            "give what is in the .pub file, such as 'ssh-ed25519 AAAA... name'",
            "ssh_keys",
        )


def _doubles(site: Site, users: list[dict[str, Any]], key: str) -> Iterator[str]:
    values = [user[key] for user in users if key in user]
    for value in dict.fromkeys(value for value in values if values.count(value) > 1):
        names = " and ".join(str(user.get("name")) for user in users if user.get(key) == value)
        yield site.problem(
            f"users {names} share the {key} {value}",
            f"give each {key} once",
            key,
            "base_users",
            value=value,
        )


def _clear_text(site: Site, users: list[dict[str, Any]]) -> Iterator[str]:
    remedy = f"remove it; {_HOW_TO_HASH}"
    found = [entry for entry in site.sources.entries if entry.key == "password"]
    for entry in found:
        if entry.tag != "!vault" and "{{" not in entry.value:
            yield f"{entry.place}: a password in clear text; {remedy}"
    for user in users:
        if "password" in user and not found:
            yield site.problem(f"user {user.get('name')} has a password in clear text", remedy, "base_users")
