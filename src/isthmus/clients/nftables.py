"""nft(8): whole transactions in, set elements out."""

from __future__ import annotations

import json
from typing import Any

from isthmus.clients.process import ProcessError, run

_TIMEOUT_S = 30
_FAMILIES = ("inet", "bridge")
# nft says so of a table that does not exist, whatever the locale: strerror(ENOENT) under LC_ALL=C.
_ABSENT = "No such file or directory"


class NftError(Exception):
    """nft refused; nothing was changed."""


def apply(text: str) -> None:
    """Carry out commands, all or none; no commands are fine.

    Raises:
        NftError: nft or the kernel refused them.
    """
    if text:
        _nft("-f", "-", text=text)


def check(text: str) -> None:
    """Ask whether commands could be carried out, and change nothing.

    Raises:
        NftError: they could not; the message quotes the line.
    """
    _nft("-c", "-f", "-", text=text)


def sets(table: str) -> dict[str, frozenset[str]]:
    """Return the elements of all sets in the tables of that name; empty when there are no such tables.

    Raises:
        NftError: nft did not tell.
    """
    found: dict[str, frozenset[str]] = {}
    for family in _FAMILIES:
        try:
            told = _nft("-j", "list", "table", family, table)
        except NftError as error:
            if _ABSENT in str(error):
                continue
            raise
        for entry in json.loads(told)["nftables"]:
            if described := entry.get("set"):
                found[described["name"]] = frozenset(map(_element, described.get("elem", [])))
    return found


def _nft(*arguments: str, text: str | None = None) -> str:
    try:
        return run(["nft", *arguments], timeout_s=_TIMEOUT_S, environment={"LC_ALL": "C"}, input_text=text).stdout
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
