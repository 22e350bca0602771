"""Slurm's six formats of a time limit, and its two words for unlimited."""

from __future__ import annotations

import re

from isthmus.filters.errors import InputError

UNLIMITED = ("UNLIMITED", "INFINITE")
_FORMS = tuple(
    re.compile(form, re.ASCII)
    for form in (
        r"(?P<m>\d+)(:(?P<s>[0-5]\d))?",
        r"(?P<h>\d+):(?P<m>[0-5]\d):(?P<s>[0-5]\d)",
        r"(?P<d>\d+)-(?P<h>\d{1,2})(:(?P<m>[0-5]\d)(:(?P<s>[0-5]\d))?)?",
    )
)
_MINUTES = {"d": 24 * 60, "h": 60, "m": 1}


def time_minutes(key: str, value: object) -> int | None:
    """Parse a time limit.

    Args:
        key: the setting's name, for the message.
        value: `min`, `min:sec`, `h:m:s`, `d-h`, `d-h:m`, `d-h:m:s`, UNLIMITED or INFINITE.

    Returns:
        Whole minutes, seconds rounded up as Slurm does; None for no limit.

    Raises:
        InputError: for any other text, and for a number: YAML reads an unquoted 1:00:00 as 3600.
    """
    if not isinstance(value, str):
        raise InputError(f"{key} is not text but {value!r}", "put the time in quotes, e.g. '1:00:00'")
    if value.upper() in UNLIMITED:
        return None
    for form in _FORMS:
        if match := form.fullmatch(value):
            parts = {unit: int(number) for unit, number in match.groupdict(default="0").items()}
            if "d" in parts and parts["h"] > 23:
                break
            minutes = sum(parts.get(unit, 0) * factor for unit, factor in _MINUTES.items())
            return minutes + bool(parts.get("s"))
    raise InputError(
        f"{key} is no time: {value!r}",
        "write min, min:sec, h:m:s, d-h, d-h:m, d-h:m:s, UNLIMITED or INFINITE",
    )
