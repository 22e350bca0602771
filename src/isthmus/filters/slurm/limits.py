"""Compares limits as an administrator writes them with limits as sacctmgr prints them.

The two differ in form (`mem=2048` is printed as `mem=2G`, `90` as `01:30:00`), so both are parsed to numbers. Only the
inventory's limits are compared: others, or other parts of a TRES limit, stay as the administrator set them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from isthmus.filters.errors import InputError
from isthmus.filters.slurm.time_limits import time_minutes
from isthmus.filters.suggest import check_keys
from isthmus.model.slurm.limits import LimitKind

_UNSET = "-1"
_TRES = re.compile(r"(?P<name>[a-z]+(/[A-Za-z0-9_.:-]+)?)=(?P<number>-1|\d+(\.\d+)?)(?P<unit>[KMGTP]?)", re.ASCII)
_FACTOR = {"": 1, "K": 1024, "M": 1024**2, "G": 1024**3, "T": 1024**4, "P": 1024**5}


def limit_changes(
    where: str, wanted: Mapping[str, Any], current: Mapping[str, str], kinds: Mapping[str, LimitKind]
) -> list[str]:
    """Return which limits differ.

    Args:
        where: owner of the limits, for messages.
        wanted: limit -> value; -1 removes a limit.
        current: limit -> what sacctmgr prints; a missing one counts as unset.
        kinds: the known limits.

    Returns:
        `Limit=value` words for sacctmgr, in the order of `wanted`; values normalised.

    Raises:
        InputError: for an unknown limit or a value that does not fit its kind.
    """
    check_keys(f"limits of {where}", wanted, kinds)
    changes = []
    for name, value in wanted.items():
        key = f"{name} of {where}"
        if kinds[name] is LimitKind.TRES:
            new = _tres_change(key, value, current.get(name, ""))
        else:
            read = _minutes if kinds[name] is LimitKind.TIME else _count
            if kinds[name] is LimitKind.NUMBER and str(value) == _UNSET:
                raise InputError(f"{key} cannot be unset", "give a whole number")
            number = read(key, value)
            same = number == read(key, current.get(name) or _UNSET)
            new = "" if same else str(_UNSET if number is None else number)
        if new:
            changes.append(f"{name}={new}")
    return changes


def _minutes(key: str, value: object) -> int | None:
    return None if str(value) == _UNSET else time_minutes(key, value)


def _count(key: str, value: object) -> int | None:
    text = str(value)
    if isinstance(value, bool) or not re.fullmatch(r"-1|\d+", text, re.ASCII):
        raise InputError(f"{key} is {value!r}", "give a whole number, or -1 for no limit")
    return None if text == _UNSET else int(text)


def _tres_change(key: str, value: object, printed: str) -> str:
    current = _tres(key, printed)
    wanted = dict.fromkeys(current) if str(value) == _UNSET else _tres(key, str(value))
    return ",".join(
        f"{name}={_UNSET if amount is None else _written(name, amount)}"
        for name, amount in wanted.items()
        if amount != current.get(name)
    )


def _tres(key: str, text: str) -> dict[str, int | None]:
    """Parse `cpu=8,mem=2G` into amounts; memory in MiB, None for -1."""
    amounts: dict[str, int | None] = {}
    for part in filter(None, text.split(",")):
        match = _TRES.fullmatch(part)
        if not match:
            raise InputError(f"{key} has {part!r}", "write e.g. cpu=8,mem=4G,gres/gpu=2, or -1 for no limit")
        name, number, unit = match["name"], match["number"], match["unit"]
        if name == "mem":
            unit = unit or "M"
        amount = float(number) * _FACTOR[unit] / (_FACTOR["M"] if name == "mem" else 1)
        amounts[name] = None if number == _UNSET else round(amount)
    if not amounts and text:
        raise InputError(f"{key} has {text!r}", "write e.g. cpu=8,mem=4G, or -1 for no limit")
    return amounts


def _written(name: str, amount: int) -> str:
    return f"{amount}M" if name == "mem" else str(amount)
