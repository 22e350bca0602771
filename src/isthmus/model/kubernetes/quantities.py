"""Quantities of Kubernetes, exactly: `250m`, `1.5`, `2Gi`, `1e3` (apimachinery, resource.Quantity).

Kubernetes' Python client has a parser for them, and would be loaded for nothing else.
"""

from __future__ import annotations

import math
import re
from fractions import Fraction

_FORM = re.compile(
    r"(?P<number>[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+))(?:(?P<unit>[KMGTPE]i|[numkMGTPE])|[eE](?P<power>[+-]?[0-9]{1,2}))?"
)
_DECIMAL = {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
MIB = 2**20


def parse(text: str | int | float) -> Fraction:
    """Parse a quantity.

    Raises:
        ValueError: not a quantity.
    """
    match = _FORM.fullmatch(str(text))
    if not match:
        raise ValueError(f"{text!r} is no quantity; write e.g. 500m, 2 or 1Gi")
    unit, power = match["unit"] or "", int(match["power"] or 0)
    factor = Fraction(2) ** _BINARY[unit] if unit in _BINARY else Fraction(10) ** _DECIMAL.get(unit, power)
    return Fraction(match["number"].rstrip(".")) * factor


def whole(text: str | int | float, divisor: str | int = 1) -> int:
    """Return how many divisors a quantity has, rounded up; a divisor of 0 counts as 1."""
    return math.ceil(parse(text) / (parse(divisor) or 1))
