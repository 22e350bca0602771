"""Strict parsing of a JSON object: unknown or malformed fields are refused by name.

Both etcd's values and the socket's messages are read by this. Python's json alone accepts two values for one name,
NaN, true for 1 and text in UTF-16, and leaves by RecursionError where brackets are nested deeply.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from enum import StrEnum
from ipaddress import IPv4Address, IPv4Network
from typing import Any, NoReturn, TypeVar

E = TypeVar("E", bound=StrEnum)

# Words of a message that come from outside are cut here.
_SHOWN = 60
# Lone surrogates are no characters: they can be read, but not written again.
_SURROGATE = re.compile("[\ud800-\udfff]")


class FieldError(ValueError):
    """A value is not what was agreed."""


class BoundError(FieldError):
    """A field has the right type, but no value that is allowed."""


def shown(value: object) -> str:
    """Return a foreign value as short printable ASCII, for a message."""
    text = ascii(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def parse(text: str) -> dict[str, Any]:
    """Read one JSON object.

    Raises:
        FieldError: it is something else.
    """
    try:
        value = json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant)
    except FieldError:
        raise
    except RecursionError:
        raise FieldError("not JSON: nested too deeply") from None
    except ValueError as error:
        raise FieldError(f"not JSON: {str(error)[:_SHOWN]}") from error
    if not isinstance(value, dict):
        raise FieldError("not a JSON object")
    return value


class Fields:
    """The fields of one object, each taken once; what nobody took is refused by `end`."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = dict(values)

    def has(self, name: str) -> bool:
        """Return whether there is such a field."""
        return name in self._values

    def integer(self, name: str, first: int, last: int) -> int:
        """Take a whole number within bounds."""
        value = self.take(name, int)
        if not first <= value <= last:
            raise BoundError(f"{name} is not within {first} and {last}")
        return int(value)

    def number(self, name: str, last: float) -> float:
        """Take a number above zero that is at most `last`."""
        value = self.take(name, int, float)
        # NaN is refused as well: it compares to nothing.
        if not 0 < value <= last:
            raise BoundError(f"{name} is not above 0 and at most {last:g}")
        return float(value)

    def text(self, name: str, longest: int, allowed: Callable[[str], object] = lambda text: True) -> str:
        """Take a text of Unicode characters; `allowed` may refuse it."""
        value = str(self.take(name, str))
        if len(value) > longest:
            raise BoundError(f"{name} is longer than {longest} characters")
        if _SURROGATE.search(value) or not allowed(value):
            raise BoundError(f"{name} cannot be {shown(value)}")
        return value

    def choice(self, name: str, choices: type[E]) -> E:
        """Take a member of an enum by its value."""
        value = self.take(name, str)
        try:
            return choices(value)
        except ValueError:
            words = ", ".join(choices)
            raise BoundError(f"{name} cannot be {shown(value)}; one of {words}") from None

    def address(self, name: str) -> IPv4Address:
        """Take an IPv4 address."""
        return address(name, self.take(name, str))

    def network(self, name: str) -> IPv4Network:
        """Take a network, `address/length`."""
        return network(name, self.take(name, str))

    def take(self, name: str, *types: type) -> Any:
        """Take a value of exactly one of the types: true is no 1."""
        if name not in self._values:
            raise FieldError(f"{name} is missing")
        value = self._values.pop(name)
        if type(value) not in types:
            raise FieldError(f"{name} is no {' or '.join(_WORDS[each] for each in types)}")
        return value

    def rest(self) -> dict[str, Any]:
        """Take all that nobody took."""
        values, self._values = self._values, {}
        return values

    def end(self) -> None:
        """Refuse what nobody took.

        Raises:
            FieldError: there is such a field.
        """
        if self._values:
            raise FieldError(f"unknown field {shown(min(self._values))}")


_WORDS = {
    bool: "true or false",
    int: "whole number",
    float: "number",
    str: "text",
    list: "list",
    dict: "object",
    type(None): "null",
}


def address(name: str, text: object) -> IPv4Address:
    """Read an address that a message calls `name`."""
    try:
        if isinstance(text, str):
            return IPv4Address(text)
    except ValueError:
        pass
    raise BoundError(f"{name} holds {shown(text)}, no IPv4 address")


def network(name: str, text: object) -> IPv4Network:
    """Read a network, `address/length`, that a message calls `name`."""
    try:
        # One way to write it, so that equal networks are equal texts.
        if isinstance(text, str) and str(found := IPv4Network(text)) == text:
            return found
    except ValueError:
        pass
    raise BoundError(f"{name} holds {shown(text)}, no IPv4 network")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) != len(pairs):
        raise FieldError("not JSON: a name appears twice in one object")
    return values


def _no_constant(name: str) -> NoReturn:
    raise FieldError(f"not JSON: {name}")
