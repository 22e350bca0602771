"""Reconciles etcd's users and roles: the present ones are read, and only differences are written.

Each user has one role, of the same name, with the key ranges that they may read or write. Users and roles that are not
desired are removed, so that the list is complete. `root` may do everything. As long as authentication is off
anybody with a certificate may do all this; the last step turns it on.

Every change makes all tokens old and all clients log in again: one more reason to change nothing without need.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from isthmus.clients.etcd.store import Access, DeniedError, Etcd, EtcdError
from isthmus.clients.etcd.wire import prefix_range

ROOT = "root"
_OFF = "authentication is not enabled"


class Right(StrEnum):
    """What may be done with the keys of a range."""

    READ = "read"
    WRITE = "write"
    READWRITE = "readwrite"


@dataclass(frozen=True, slots=True)
class Permission:
    """A right on a range of keys; both ends as etcd has them, in base64."""

    right: Right
    key: str
    end: str

    @classmethod
    def below(cls, prefix: str, right: Right) -> Permission:
        """Return the right on all keys that begin with a prefix."""
        keys = prefix_range(prefix)
        return cls(right, keys["key"], keys["range_end"])


@dataclass(frozen=True, slots=True)
class Account:
    """A user with the role of the same name."""

    name: str
    password: str = field(repr=False)
    permissions: frozenset[Permission] = frozenset()


@dataclass(frozen=True, slots=True)
class Present:
    """What etcd has.

    Attributes:
        enabled: whether authentication is on.
        users: name -> roles.
        roles: name -> permissions.
        wrong: users whose password differs from the desired one.
    """

    enabled: bool = False
    users: Mapping[str, frozenset[str]] = field(default_factory=dict)
    roles: Mapping[str, frozenset[Permission]] = field(default_factory=dict)
    wrong: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Step:
    """One call of etcd, and what it does in words that may be shown."""

    text: str
    path: str
    body: Mapping[str, Any] = field(default_factory=dict, repr=False)


def apply(access: Access, accounts: Iterable[Account], *, dry: bool = False) -> list[str]:
    """Bring users and roles about; return what was (or, dry, would be) done.

    Args:
        access: as root, with its password; it is one of the accounts.
        accounts: the desired ones; all others are removed.
        dry: change nothing.

    Raises:
        DeniedError: etcd has another password for root.
        EtcdError: anything else that etcd refuses.
    """
    desired = {account.name: account for account in accounts}
    enabled = _is_enabled(access)
    with closing(Etcd(access if enabled else replace(access, user=""))) as etcd:
        steps = list(plan(_look(etcd, access, desired.values(), enabled=enabled), desired))
        for step in steps if not dry else ():
            etcd.call(step.path, step.body)
    return [step.text for step in steps]


def plan(present: Present, desired: Mapping[str, Account]) -> Iterator[Step]:
    """Yield the steps from the present to the desired state."""
    for name, account in sorted(desired.items()):
        yield from _role(name, account, present)
        yield from _user(name, account, present)
    for name in sorted(set(present.users) - set(desired)):
        yield Step(f"remove user {name}", "auth/user/delete", {"name": name})
    for name in sorted(set(present.roles) - set(desired)):
        yield Step(f"remove role {name}", "auth/role/delete", {"role": name})
    if not present.enabled:
        yield Step("turn authentication on", "auth/enable")


def _role(name: str, account: Account, present: Present) -> Iterator[Step]:
    if name not in present.roles:
        yield Step(f"add role {name}", "auth/role/add", {"name": name})
    if name == ROOT:
        # etcd shows a right on everything that nobody can revoke.
        return
    found = present.roles.get(name, frozenset())
    # A right on the same keys is replaced by the grant itself.
    granted = {(one.key, one.end) for one in account.permissions}
    for one in sorted(found - account.permissions, key=str):
        if (one.key, one.end) not in granted:
            keys = {"key": one.key, "range_end": one.end}
            yield Step(f"revoke a right of role {name}", "auth/role/revoke", {"role": name, **keys})
    for one in sorted(account.permissions - found, key=str):
        right = {"permType": one.right.upper(), "key": one.key, "range_end": one.end}
        yield Step(f"grant {one.right} to role {name}", "auth/role/grant", {"name": name, "perm": right})


def _user(name: str, account: Account, present: Present) -> Iterator[Step]:
    secret = {"name": name, "password": account.password}
    if name not in present.users:
        yield Step(f"add user {name}", "auth/user/add", secret)
    elif name in present.wrong:
        yield Step(f"set the password of user {name}", "auth/user/changepw", secret)
    roles = present.users.get(name, frozenset())
    if name not in roles:
        yield Step(f"give user {name} their role", "auth/user/grant", {"user": name, "role": name})
    for role in sorted(roles - {name}):
        yield Step(f"take role {role} from user {name}", "auth/user/revoke", {"name": name, "role": role})


def _is_enabled(access: Access) -> bool:
    with closing(Etcd(replace(access, user=""))) as etcd:
        try:
            etcd.call("auth/authenticate", {"name": access.user, "password": access.password})
        except EtcdError as error:
            if _OFF in str(error):
                return False
            raise
    return True


def _look(etcd: Etcd, access: Access, accounts: Iterable[Account], *, enabled: bool) -> Present:
    users = {
        name: frozenset(etcd.call("auth/user/get", {"name": name}).get("roles", ()))
        for name in etcd.call("auth/user/list", {}).get("users", ())
    }
    roles = {
        name: frozenset(map(_permission, etcd.call("auth/role/get", {"role": name}).get("perm", ())))
        for name in etcd.call("auth/role/list", {}).get("roles", ())
    }
    there = [account for account in accounts if account.name in users]
    # Without authentication no password can be tried: then all are set.
    wrong = frozenset(each.name for each in there if not enabled or not _is_right(access, each))
    return Present(enabled, users, roles, wrong)


def _is_right(access: Access, account: Account) -> bool:
    try:
        return _is_enabled(replace(access, user=account.name, password=account.password))
    except DeniedError:
        return False


def _permission(text: Mapping[str, Any]) -> Permission:
    # The first of protobuf's enum, READ, is left out.
    return Permission(Right(text.get("permType", "READ").lower()), text.get("key", ""), text.get("range_end", ""))
