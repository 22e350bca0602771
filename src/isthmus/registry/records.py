"""Owners' access settings of repositories: a file per owner, read at the start, rewritten atomically.

An owner whose file cannot be read has private repositories and can change nothing, until an admin has looked at it.
"""

from __future__ import annotations

import json
import logging
from pathlib import Path

from isthmus.model.registry import (
    PRIVATE,
    SCHEMA,
    Access,
    RegistryMessageError,
    is_namespace,
    is_repository,
    namespace,
    read_access,
    write_access,
)
from isthmus.support import durable

# Of one owner; more would be somebody filling the disk.
MOST = 1000
_LOG = logging.getLogger(__name__)
_Owned = dict[str, Access]


class RecordsError(Exception):
    """A change that cannot be kept; the message has the remedy."""


class Records:
    """The records of all owners.

    Args:
        folder: of the files.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._owners: dict[str, _Owned] = {}
        self._unreadable: set[str] = set()
        for path in sorted(folder.glob("*.json")):
            self._load(path)

    def access(self, repository: str) -> Access:
        """Return what its owner has said about a repository."""
        return self._owners.get(namespace(repository), {}).get(repository, PRIVATE)

    def of(self, owner: str) -> dict[str, Access]:
        """Return all that an owner has said."""
        return dict(self._owners.get(owner, {}))

    def shared_with(self, account: str) -> list[str]:
        """Return others' repositories that an account may pull from."""
        return sorted(
            repository
            for owner, said in self._owners.items()
            if owner != account
            for repository, access in said.items()
            if access.admits(account)
        )

    def keep(self, repository: str, access: Access) -> None:
        """Keep what its owner says about a repository.

        Raises:
            RecordsError: they have said too much, or it cannot be written; then all is as before.
        """
        owner = namespace(repository)
        path = self._path(owner)
        if owner in self._unreadable:
            raise RecordsError(
                f"the record of {owner} is damaged; an admin must mend or remove {path} on the controller"
            )
        said = self.of(owner) | {repository: access}
        # Private is what nothing was said about.
        said = {name: each for name, each in said.items() if each != PRIVATE}
        if len(said) > MOST:
            raise RecordsError(f"{owner} shares {MOST} repositories already; make some private first")
        content = {"schema": SCHEMA, "repositories": {name: write_access(each) for name, each in said.items()}}
        try:
            durable.write(path, json.dumps(content, indent=1) + "\n", 0o600)
        except OSError as error:
            raise RecordsError(f"{path} on the controller: {error.strerror}; nothing was changed") from error
        self._owners[owner] = said

    def _load(self, path: Path) -> None:
        owner = path.stem
        try:
            said = json.loads(path.read_text(encoding="utf-8"))
            if said["schema"] != SCHEMA or not is_namespace(owner):
                raise RegistryMessageError("it is of another schema, or of nobody")
            found = {str(name): read_access(each) for name, each in said["repositories"].items()}
            if strange := [name for name in found if not is_repository(name) or namespace(name) != owner]:
                raise RegistryMessageError(f"it speaks of {strange[0]!r}")
            self._owners[owner] = found
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            self._unreadable.add(owner)
            _LOG.error("%s cannot be used (%s): all of %s is private until it is mended or removed", path, error, owner)

    def _path(self, owner: str) -> Path:
        return self._folder / f"{owner}.json"
