"""Medians of paired ratios, with an interval that assumes nothing about their distribution. Pure.

The interval is that of the sign test: the k-th smallest and k-th largest of n values contain the median with a
probability from the binomial distribution. With fewer than six pairs no interval reaches 95 %.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from math import comb

LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class Median:
    """A median with its confidence interval.

    Attributes:
        value: the median.
        low: the lower end of its interval; None where there are too few values.
        high: the upper end.
        count: of values.
    """

    value: float
    low: float | None
    high: float | None
    count: int

    def lies_within(self, low: float, high: float) -> bool:
        """Return whether the whole interval lies within two bounds."""
        return self.low is not None and self.high is not None and low <= self.low and self.high <= high


def median(values: Sequence[float]) -> Median:
    """Return the median of values, at least one of them, with its 95 % interval."""
    ordered, place = sorted(values), _place(len(values))
    low, high = (ordered[place], ordered[-1 - place]) if place is not None else (None, None)
    return Median(statistics.median(ordered), low, high, len(ordered))


def ratios(over: Sequence[float], under: Sequence[float]) -> list[float]:
    """Return the ratios of pairs of one round each."""
    return [one / other for one, other in zip(over, under, strict=True)]


def _place(count: int) -> int | None:
    """Return how many values may lie outside on each side."""
    outside, place = 0.0, None
    for dropped in range((count + 1) // 2):
        outside += 2 * comb(count, dropped) * 0.5**count
        if outside > 1 - LEVEL:
            break
        place = dropped
    return place
