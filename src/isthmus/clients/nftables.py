"""nft(8): whole transactions in, set elements out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from isthmus.clients.process import ProcessError, run

_TIMEOUT_S = 30
_FAMILIES = ("inet", "bridge")
# nft says so of a table that does not exist, whatever the locale: strerror(ENOENT) under LC_ALL=C.
_ABSENT = "No such file or directory"


class NftError(Exception):
    """nft refused; nothing was changed."""


def apply(text: str, namespace: Path | None = None) -> None:
    """Carry out commands, all or none; no commands are fine.

    Args:
        text: the commands.
        namespace: file of the network namespace to do it in; None for this thread's.

    Raises:
        NftError: nft or the kernel refused them.
    """
    if text:
        _nft("-f", "-", text=text, namespace=namespace)


def check(text: str) -> None:
    """Ask whether commands could be carried out, and change nothing.

    Raises:
        NftError: they could not; the message quotes the line.
    """
    _nft("-c", "-f", "-", text=text)


def sets(table: str) -> dict[str, frozenset[str]]:
    """Return the elements of all sets in the tables of that name but those the kernel fills; empty without such tables.

    Raises:
        NftError: nft failed.
    """
    found: dict[str, frozenset[str]] = {}
    for family in _FAMILIES:
        try:
            output = _nft("-j", "list", "table", family, table)
        except NftError as error:
            if _ABSENT in str(error):
                continue
            raise
        for entry in json.loads(output)["nftables"]:
            described = entry.get("set")
            # Such sets alone have a size, and nft 1.0 does not print that they are dynamic.
            if described and "size" not in described:
                found[described["name"]] = frozenset(map(_element, described.get("elem", [])))
    return found


def timeouts(family: str, table: str, namespace: Path | None = None) -> dict[str, dict[str, int]]:
    """Return which elements of a table's sets end by themselves: set -> element -> seconds left; empty without a table.

    Raises:
        NftError: nft failed.
    """
    found: dict[str, dict[str, int]] = {}
    for entry in listed(family, table, namespace) or ():
        for each in entry.get("set", {}).get("elem", ()):
            element = each.get("elem", {}) if isinstance(each, dict) else {}
            if "expires" in element:
                found.setdefault(entry["set"]["name"], {})[_element(element["val"])] = element["expires"]
    return found


def listed(family: str, table: str, namespace: Path | None = None) -> list[dict[str, Any]] | None:
    """Return what a table has, as in libnftables-json(5): sets, maps, chains and rules; None without a table.

    Raises:
        NftError: nft failed.
    """
    try:
        output = _nft("-j", "list", "table", family, table, namespace=namespace)
    except NftError as error:
        if _ABSENT in str(error) and (namespace is None or namespace.exists()):
            return None
        raise
    entries: list[dict[str, Any]] = json.loads(output)["nftables"]
    return entries


def _nft(*arguments: str, text: str | None = None, namespace: Path | None = None) -> str:
    # nsenter(1), and not a thread that changes its namespace: the program alone is to be in there.
    inside = ["nsenter", f"--net={namespace}", "--"] if namespace else []
    argv = [*inside, "nft", *arguments]
    try:
        return run(argv, timeout_s=_TIMEOUT_S, environment={"LC_ALL": "C"}, input_text=text).stdout
    except ProcessError as error:
        raise NftError(str(error)) from error


def _element(value: Any) -> str:
    """Return an element as nft's own language has it."""
    if not isinstance(value, dict):
        return str(value)
    if "concat" in value:
        return " . ".join(map(_element, value["concat"]))
    if "prefix" in value:
        return f"{value['prefix']['addr']}/{value['prefix']['len']}"
    if "range" in value:
        return "-".join(map(_element, value["range"]))
    return _element(value["elem"]["val"])
