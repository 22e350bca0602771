"""The site as validation sees it: groups, variables read one at a time, and places for messages.

Ansible templates a variable when it is read. Before the first change there are no facts, and files that a
later play makes do not exist; a value that needs them is simply not known yet, and the checks on the nodes
(each role's preflight) see it then. Only variables that a check needs are read: a lookup may have side effects.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from jinja2 import Undefined, UndefinedError

from isthmus.filters.errors import InputError
from isthmus.filters.validate.sources import Sources


@dataclass(frozen=True)
class Site:
    """The input of checks.

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
        """Return a host's variable without its unknown parts, None if it is unset or unknown."""
        try:
            return _known(self.hostvars[host][name])
        except (KeyError, UndefinedError):
            return None

    def shared(self, name: str) -> Any:
        """Return a variable of the whole cluster, as the controller (else the first host) has it."""
        return self.read(self._first, name) if self.hosts else None

    def whole(self, name: str) -> Any:
        """Return a variable of the whole cluster, None if any part of it is unknown."""
        try:
            return _known(self.hostvars[self._first][name], partly=False) if self.hosts else None
        except (KeyError, UndefinedError):
            return None

    def default(self, role: str, variable: str) -> Any:
        """Return the default of a role's variable; None where there is none."""
        entries = self.role_specs.get(role, {}).get("argument_specs", {})
        return entries.get("main", {}).get("options", {}).get(variable, {}).get("default")

    def shared_list(self, name: str) -> list[dict[str, Any]]:
        """Return a shared list of dicts; the check of role arguments reports other types."""
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

    def port_problems(self, variables: Iterable[str]) -> Iterator[str]:
        """Yield the problems of a host's ports: invalid, or used twice."""
        owners: dict[int, str] = {}
        for variable in variables:
            port = self.shared(variable)
            if port is None:
                continue
            if not isinstance(port, int) or not 1 <= port <= 65535:
                yield self.problem(f"{variable} is {port!r}, no port", "write a number from 1 to 65535", variable)
            elif owners.setdefault(port, variable) != variable:
                taken = f"{variable} and {owners[port]} are both {port}"
                yield self.problem(taken, "give each a port of its own", variable)


def _known(value: Any, *, partly: bool = True) -> Any:
    """Copy a lazily templated value without its unknown parts, or refuse it for them."""
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
