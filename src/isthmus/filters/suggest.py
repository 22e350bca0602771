"""The error for an unknown name: it lists the known ones and suggests the most similar."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches

from isthmus.filters.errors import InputError


def unknown(kind: str, name: str, known: Iterable[str]) -> InputError:
    """Return the error for an unknown name.

    Args:
        kind: of the name, and where it stands, e.g. `node or group in partition batch`.
        name: the unknown name.
        known: the valid names.
    """
    names = sorted(set(known))
    close = get_close_matches(name.lower(), [each.lower() for each in names], n=1)
    meant = [each for each in names if close and each.lower() == close[0]]
    guess = f"did you mean {meant[0]!r}? " if meant else ""
    return InputError(f"unknown {kind}: {name!r}", f"{guess}known: {', '.join(names) or 'none'}")


def check_keys(kind: str, given: Mapping[str, object], known: Iterable[str], required: Iterable[str] = ()) -> None:
    """Refuse a dict with an unknown key, or without a required one.

    Raises:
        InputError: for the first such key.
    """
    names = tuple(known)
    for key in given:
        if key not in names:
            raise unknown(f"key of {kind}", str(key), names)
    for key in required:
        if not given.get(key):
            raise InputError(f"{kind} lacks {key}: {dict(given)}", f"set {key}")
