"""Settings of slurm.conf and its relatives: merged from defaults and additions, rendered as Key=Value.

Slurm ignores case in keys; a case-sensitive merge would write one key twice.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from isthmus.filters.errors import InputError

OMIT = "omit"
_TIMEOUTS = ("SlurmctldTimeout", "SlurmdTimeout")
_KEY = re.compile(r"[A-Za-z][A-Za-z0-9_]*")


def slurm_settings(defaults: Mapping[str, object], extra: Mapping[str, object]) -> dict[str, object]:
    """Merge an admin's additions into the defaults; the value `omit` drops a key.

    Args:
        defaults: settings of the role; their spelling and order are kept.
        extra: settings that win; new keys follow in their own order.

    Raises:
        InputError: when `extra` holds one key in two spellings.
    """
    spelling = {key.lower(): key for key in defaults}
    merged = dict(defaults)
    seen: dict[str, str] = {}
    for key, value in extra.items():
        first = seen.setdefault(key.lower(), key)
        if first != key:
            raise InputError(f"{first} and {key} are the same key to Slurm", "keep one of them")
        merged[spelling.get(key.lower(), key)] = value
    return {key: value for key, value in merged.items() if value != OMIT}


def slurm_widened(settings: Mapping[str, object], seconds: int) -> dict[str, object]:
    """Raise the timeouts after which jobs of unreachable daemons fail, for an upgrade's restarts; 0 leaves them."""
    wide = {key: max(seconds, int(str(settings.get(key, 0)))) for key in _TIMEOUTS} if seconds else {}
    return slurm_settings(settings, wide)


def slurm_widened_mark(seconds: int) -> str:
    """Return the line that marks timeouts raised by an upgrade; none otherwise."""
    return "# Widened for an upgrade.\n" if seconds else ""


def slurm_conf(settings: Mapping[str, object]) -> str:
    r"""Render settings, one `Key=Value\n` each, in their order.

    Raises:
        InputError: for an invalid key, or a value that `conf_value` refuses.
    """
    return "".join(f"{conf_key(key)}={conf_value(key, value)}\n" for key, value in settings.items())


def conf_key(key: str) -> str:
    """Return the key if it is a single word.

    Raises:
        InputError: otherwise.
    """
    if not _KEY.fullmatch(key):
        raise InputError(f"{key!r} is no key of a Slurm file", "use one word such as SlurmdTimeout")
    return key


def conf_value(key: str, value: object) -> str:
    """Render one value: bool as YES or NO, a list joined by commas, numbers and text as they are.

    Raises:
        InputError: for an empty value, a line break (which would start another setting), or a type without
            a form in Slurm.
    """
    if isinstance(value, bool):
        return "YES" if value else "NO"
    if isinstance(value, list | tuple):
        text = ",".join(conf_value(key, item) for item in value)
    elif isinstance(value, str | int | float):
        text = str(value)
    else:
        raise InputError(f"{key} is a {type(value).__name__}", "give text, a number, a bool or a list of these")
    if "\n" in text or "\r" in text:
        raise InputError(f"{key} has a line break in its value", "write the value on one line")
    if not text.strip():
        raise InputError(f"{key} has no value", f"set it, or drop the key with the value {OMIT!r}")
    return text
