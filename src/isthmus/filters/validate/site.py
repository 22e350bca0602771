"""The site as validation sees it: groups, variables read one at a time, and places for messages.

Ansible templates a variable when it is read. Before the first change there are no facts, and files that a
later play makes do not exist; a value that needs them is simply not known yet, and the checks on the nodes
(each role's preflight) see it then. Nothing is read that no check asks for: a lookup may act.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from jinja2 import Undefined, UndefinedError

from isthmus.filters.errors import InputError
from isthmus.filters.validate.sources import Sources


@dataclass(frozen=True)
class Site:
    """Everything a check may look at.

    Attributes:
        hostvars: host -> variable -> value, templated as it is read.
        groups: group -> host names.
        role_specs: role -> parsed meta/argument_specs.yml.
        sources: the inventory's files.
    """

    hostvars: Mapping[str, Mapping[str, Any]]
    groups: Mapping[str, list[str]]
    role_specs: Mapping[str, Mapping[str, Any]]
    sources: Sources

    @property
    def hosts(self) -> list[str]:
        """All hosts of the inventory."""
        return list(self.groups.get("all", ()))

    def group(self, name: str) -> list[str]:
        """Return the hosts of a group, none if there is no such group."""
        return list(self.groups.get(name, ()))

    def names(self, host: str) -> Iterable[str]:
        """Return the names of a host's variables."""
        return self.hostvars[host].keys()

    def read(self, host: str, name: str) -> Any:
        """Return a host's variable without what is not known yet, None if it is unset or unknown."""
        try:
            return _known(self.hostvars[host][name])
        except (KeyError, UndefinedError):
            return None

    def shared(self, name: str) -> Any:
        """Return a variable of the whole cluster, as the controller (else the first host) has it."""
        return self.read(self._first, name) if self.hosts else None

    def whole(self, name: str) -> Any:
        """Return a variable of the whole cluster, None if any part of it is not known yet."""
        try:
            return _known(self.hostvars[self._first][name], partly=False) if self.hosts else None
        except (KeyError, UndefinedError):
            return None

    def shared_list(self, name: str) -> list[dict[str, Any]]:
        """Return a shared list of dicts; role arguments tell about other types."""
        value = self.shared(name)
        return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []

    @property
    def _first(self) -> str:
        return (self.group("controller") + self.hosts)[0]

    def problem(self, what: str, remedy: str, *keys: str, value: object = None) -> str:
        """Write one line: place of the first key that stands in a file, what is wrong, what to do."""
        return f"{self.sources.where(*keys, value=value)}: {what}; {remedy}"

    def problem_of(self, error: InputError, *keys: str, value: object = None) -> str:
        """Write an error of another filter as a problem."""
        return self.problem(error.problem, error.remedy, *keys, value=value)


def _known(value: Any, *, partly: bool = True) -> Any:
    """Copy a lazily templated value, leaving out the parts that cannot be told yet, or refusing it for them."""
    if isinstance(value, Undefined):
        raise UndefinedError
    if isinstance(value, Mapping):
        return dict(_known_items(value, value, partly))
    if isinstance(value, list | tuple):
        return [item for _, item in _known_items(range(len(value)), value, partly)]
    return value


def _known_items(keys: Iterable[Any], values: Any, partly: bool) -> Iterable[tuple[Any, Any]]:
    for key in keys:
        try:
            item = _known(values[key], partly=partly)
        except UndefinedError:
            if not partly:
                raise
            continue
        yield key, item
