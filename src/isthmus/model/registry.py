"""The cluster's registry as its users see it: names, who may read a repository, and what they have there.

`isthmus images` and isthmus-tokend share these; what either reads from the other, or from a disk, is checked here. The
first component of a repository's name says whose it is: a user's, or the site's.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

SCHEMA = 1
# Of the settings that the playbook writes for isthmus-tokend.
SETTINGS_SCHEMA = 1
# The site's own namespaces; no user can have one of these names.
SITE = frozenset({"bench", "conformance", "isthmus", "library", "mpi", "workloads"})
ACCESS_PATH, IMAGES_PATH = "/isthmus/v1/access", "/isthmus/v1/images"
# Of one repository; a site that shares with more means everybody.
MOST_USERS = 64
# As the registry itself has them (distribution, reference.Regexp), so that nothing is allowed here that it cannot have.
_COMPONENT = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_NAMESPACE = re.compile(_COMPONENT)
_REPOSITORY = re.compile(rf"{_COMPONENT}(?:/{_COMPONENT})*")
_NAME_LENGTH = 255


class RegistryMessageError(ValueError):
    """Words that are none; the message says which."""


class Readers(StrEnum):
    """Who may pull from a repository besides its owner."""

    PRIVATE = "private"
    SITE = "site"
    USERS = "users"


@dataclass(frozen=True, slots=True)
class Access:
    """Who may pull from one repository; its owner always may.

    Attributes:
        readers: nobody else, every account of the site, or some.
        users: those, with `Readers.USERS` alone.
    """

    readers: Readers = Readers.PRIVATE
    users: frozenset[str] = frozenset()

    def admits(self, account: str) -> bool:
        """Return whether an account that is not the owner may pull."""
        return self.readers == Readers.SITE or (self.readers == Readers.USERS and account in self.users)

    def words(self) -> str:
        """Say it to a user."""
        return ", ".join(sorted(self.users)) if self.readers == Readers.USERS else self.readers.value


PRIVATE = Access()


@dataclass(frozen=True, slots=True)
class Repository:
    """What a user has under one name.

    Attributes:
        name: with their own as its first component.
        access: who may pull.
        tags: tag -> digest of the manifest it names.
        untagged: digests of manifests that no tag names any more; they count, too.
    """

    name: str
    access: Access
    tags: Mapping[str, str] = field(default_factory=dict)
    untagged: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Overview:
    """What a user has in the registry.

    Attributes:
        user: who.
        used_bytes: that count: blobs, once each; uploads under way; and so much for each name.
        quota_bytes: that they may have.
        repositories: their own.
        shared: others' that they may pull from by their owners' leave.
    """

    user: str
    used_bytes: int
    quota_bytes: int
    repositories: tuple[Repository, ...] = ()
    shared: tuple[str, ...] = ()


def is_namespace(user: str) -> bool:
    """Return whether a user's name can be a namespace of their own."""
    return _NAMESPACE.fullmatch(user) is not None and user not in SITE


def is_repository(name: str) -> bool:
    """Return whether the registry can have a repository of this name."""
    return len(name) <= _NAME_LENGTH and _REPOSITORY.fullmatch(name) is not None


def namespace(repository: str) -> str:
    """Return whose a repository is."""
    return repository.partition("/")[0]


def write_access(access: Access) -> dict[str, Any]:
    """Return it as JSON has it."""
    return {"readers": access.readers.value, "users": sorted(access.users)}


def read_access(said: object) -> Access:
    """Read it.

    Raises:
        RegistryMessageError: it is none.
    """
    if not isinstance(said, dict) or set(said) - {"readers", "users"}:
        raise RegistryMessageError("access is an object of `readers` and `users`")
    users = said.get("users", [])
    try:
        readers = Readers(str(said.get("readers")))
    except ValueError:
        raise RegistryMessageError(f"`readers` is one of {', '.join(Readers)}") from None
    if not isinstance(users, list) or not all(isinstance(user, str) for user in users) or len(users) > MOST_USERS:
        raise RegistryMessageError(f"`users` is a list of at most {MOST_USERS} names")
    if bool(users) != (readers == Readers.USERS):
        raise RegistryMessageError("`users` are named where `readers` is users, and only there")
    return Access(readers, frozenset(users))


def write_overview(overview: Overview) -> dict[str, Any]:
    """Return it as JSON has it."""
    repositories = [
        {
            "name": each.name,
            "access": write_access(each.access),
            "tags": dict(each.tags),
            "untagged": list(each.untagged),
        }
        for each in overview.repositories
    ]
    return {
        "schema": SCHEMA,
        "user": overview.user,
        "used_bytes": overview.used_bytes,
        "quota_bytes": overview.quota_bytes,
        "repositories": repositories,
        "shared": list(overview.shared),
    }


def read_overview(said: object) -> Overview:
    """Read it.

    Raises:
        RegistryMessageError: it is none.
    """
    try:
        if not isinstance(said, dict) or said["schema"] != SCHEMA:
            raise RegistryMessageError(f"the answer is not of schema {SCHEMA}")
        repositories = tuple(
            Repository(str(each["name"]), read_access(each["access"]), dict(each["tags"]), tuple(each["untagged"]))
            for each in said["repositories"]
        )
        shared = tuple(map(str, said["shared"]))
        return Overview(str(said["user"]), int(said["used_bytes"]), int(said["quota_bytes"]), repositories, shared)
    except (KeyError, TypeError) as error:
        raise RegistryMessageError(f"the answer is no overview: {error}") from error
