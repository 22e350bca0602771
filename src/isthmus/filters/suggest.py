"""The error for a name nobody knows: it lists what is known and guesses what was meant."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches

from isthmus.filters.errors import InputError


def unknown(kind: str, name: str, known: Iterable[str]) -> InputError:
    """Build (not raise) the error for an unknown name.

    Args:
        kind: what the name should be and where it stands, e.g. `node or group in partition batch`.
        name: the unknown name.
        known: the names that would have been right.
    """
    names = sorted(set(known))
    close = get_close_matches(name.lower(), [each.lower() for each in names], n=1)
    meant = [each for each in names if close and each.lower() == close[0]]
    guess = f"did you mean {meant[0]!r}? " if meant else ""
    return InputError(f"unknown {kind}: {name!r}", f"{guess}known: {', '.join(names) or 'none'}")


def check_keys(kind: str, given: Mapping[str, object], known: Iterable[str], required: Iterable[str] = ()) -> None:
    """Refuse a dict with a key nobody reads, or without one that is needed.

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
