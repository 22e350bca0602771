"""The accounts of an image, from its /etc/passwd and /etc/group (passwd(5), group(5)).

An image is a stranger's: lines that are none are left out, numbers beyond those that a pod can have as well, and of
each file no more than MOST lines are read. The first line of a name or number counts, as in the C library.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

# Ids of a pod's user namespace.
IDS = 65536
MOST = 100_000


@dataclass(frozen=True, slots=True)
class Account:
    """A line of /etc/passwd."""

    name: str
    uid: int
    gid: int
    home: str


@dataclass(frozen=True, slots=True)
class Accounts:
    """All of them.

    Attributes:
        users: in the file's order.
        groups: name -> number.
        members: name of a user -> numbers of the groups that list it.
    """

    users: tuple[Account, ...] = ()
    groups: dict[str, int] = field(default_factory=dict)
    members: dict[str, tuple[int, ...]] = field(default_factory=dict)

    def named(self, name: str) -> Account | None:
        """Return the user of a name."""
        return next((one for one in self.users if one.name == name), None)

    def numbered(self, uid: int) -> Account | None:
        """Return the user of a number."""
        return next((one for one in self.users if one.uid == uid), None)


def read(passwd: str, group: str) -> Accounts:
    """Read both files' texts."""
    users = []
    for name, rest in _lines(passwd, 6):
        uid, gid, _, home = rest[1:5]
        if _is_id(uid) and _is_id(gid):
            users.append(Account(name, int(uid), int(gid), home if _is_home(home) else ""))
    groups: dict[str, int] = {}
    members: dict[str, list[int]] = {}
    for name, rest in _lines(group, 3):
        if _is_id(rest[1]):
            groups.setdefault(name, int(rest[1]))
            for member in filter(None, rest[2].split(",") if len(rest) > 2 else ()):
                members.setdefault(member, []).append(int(rest[1]))
    return Accounts(tuple(users), groups, {name: tuple(dict.fromkeys(listed)) for name, listed in members.items()})


def _lines(text: str, fields: int) -> Iterator[tuple[str, list[str]]]:
    """Give the name and the other fields of lines that have enough of them."""
    for line in text.splitlines()[:MOST]:
        name, *rest = line.split(":")
        if name and len(rest) + 1 >= fields:
            yield name, rest


def _is_id(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= 10 and int(text) < IDS


def _is_home(text: str) -> bool:
    return text.startswith("/") and text.isprintable()
