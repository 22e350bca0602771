"""The layer apptainer: ranges of subordinate ids, and apptainer.conf.

Homes are shared, so files that a container with fakeroot creates must belong to the same ids on every host. Every host
therefore gets the controller's ranges; ranges of users who are not the site's are not changed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from isthmus.filters.errors import InputError
from isthmus.filters.suggest import unknown
from isthmus.model.subids import END_ID, Range, overlaps, parse

# Where useradd begins as well (login.defs(5)).
FIRST_ID = 100_000

_SETTING = re.compile(r"^(?P<comment># ?)?(?P<key>[a-z][a-z_ -]*?) ?=")


def apptainer_subid_file(
    text: str, first: str, file: str, users: Iterable[str], chosen: Iterable[Mapping[str, Any]], count: int
) -> str:
    """Return /etc/subuid or /etc/subgid of a host: the site's users as on all hosts, others unchanged.

    Args:
        text: the host's file.
        first: the controller's file, whose ranges are the site's.
        file: the file's name, for messages.
        users: login names of the site.
        chosen: ranges of apptainer_subids (name, start, count); their users need not be in `users`.
        count: how many ids a new range has.

    Returns:
        The lines of others, the chosen ranges, those of the controller, then new ones.

    Raises:
        InputError: a range has ids of another user, or no range of that size is left.
    """
    planned = _planned(parse(first), users, chosen, count)
    names = {each.name for each in planned}
    others = [each for each in parse(text) if each.name not in names]
    for one, other in overlaps([*planned, *others]):
        raise InputError(
            f"{file}: {one.text} and {other.text} overlap",
            f"give {one.name} another range in apptainer_subids, or remove the line of {other.name}",
        )
    return "".join(f"{each}\n" for each in [*others, *planned])


def apptainer_conf(text: str, settings: Mapping[str, Any]) -> str:
    """Apply settings to apptainer.conf as `apptainer confgen` writes it.

    Args:
        text: the output of `apptainer confgen`.
        settings: key -> value; a list gives a line per item, true and false are `yes` and `no`.

    Raises:
        InputError: Apptainer has no such setting.
    """
    lines = text.splitlines()
    for key, value in settings.items():
        places = [number for number, line in enumerate(lines) if _key(line) == key]
        if not places:
            known = {found for line in text.splitlines() if (found := _key(line))}
            raise unknown("setting in apptainer_conf", str(key), known)
        active = [number for number in places if not lines[number].startswith("#")]
        written = [f"{key} = {_word(item)}" for item in (value if isinstance(value, list) else [value])]
        first = (active or places)[0]
        rest = [line for number, line in enumerate(lines[first:], first) if number not in active]
        lines = [*lines[:first], *written, *rest]
    return "\n".join(lines) + "\n"


def apptainer_network_lists(
    networks: Mapping[str, Any], shared: Mapping[str, Mapping[str, Any]]
) -> dict[str, Mapping[str, Any]]:
    """Return the CNI lists for setuid; name -> content of its file.

    Args:
        networks: apptainer_networks, name -> plugins.
        shared: lists of other layers, name -> list; one in `networks` of that name wins.
    """
    own = {name: {"cniVersion": "1.0.0", "name": name, "plugins": plugins} for name, plugins in networks.items()}
    return {**shared, **own}


def _planned(
    present: list[Range], users: Iterable[str], chosen: Iterable[Mapping[str, Any]], count: int
) -> list[Range]:
    planned = [Range(str(each["name"]), int(each["start"]), int(each.get("count", count))) for each in chosen]
    fixed = {each.name for each in planned}
    for name in dict.fromkeys(users):
        if name not in fixed:
            kept = [each for each in present if each.name == name]
            planned += kept or [_next(name, count, [*present, *planned])]
    return planned


def _next(name: str, count: int, taken: Iterable[Range]) -> Range:
    new = Range(name, max([FIRST_ID, *(each.end for each in taken)]), count)
    if new.end > END_ID:
        raise InputError(
            f"above the last range no {count} ids are left for {name}", f"choose a range for {name} in apptainer_subids"
        )
    return new


def _key(line: str) -> str | None:
    found = _SETTING.match(line)
    return found["key"] if found else None


def _word(value: Any) -> str:
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


FILTERS: dict[str, Callable[..., object]] = {
    "apptainer_conf": apptainer_conf,
    "apptainer_network_lists": apptainer_network_lists,
    "apptainer_subid_file": apptainer_subid_file,
}
