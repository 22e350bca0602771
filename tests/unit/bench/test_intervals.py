"""Medians and their intervals."""

import random
import statistics

import pytest

from isthmus.bench.intervals import median, ratios


@pytest.mark.parametrize(("count", "place"), [(1, None), (5, None), (6, 0), (8, 0), (9, 1), (10, 1), (20, 5)])
def test_interval_is_the_sign_tests(count, place):
    """Values of tables of the binomial distribution."""
    found = median(range(count))
    assert found.value == statistics.median(range(count))
    assert (found.low, found.high) == ((None, None) if place is None else (place, count - 1 - place))


def test_interval_holds_the_median_as_often_as_it_says():
    dice = random.Random(1)  # noqa: S311
    held = 0
    for _ in range(2000):
        found = median([dice.lognormvariate(0, 1) for _ in range(10)])
        held += found.low <= 1 <= found.high
    assert held / 2000 >= 0.95


def test_interval_within_limits():
    assert median([0.99, 1, 1, 1, 1, 1.01]).lies_within(0.98, 1.02)
    assert not median([0.9, 1, 1, 1, 1, 1.01]).lies_within(0.98, 1.02)
    assert not median([1.0]).lies_within(0, 2)


def test_pairs_are_of_equal_number():
    assert ratios([2, 3], [1, 2]) == [2, 1.5]
    with pytest.raises(ValueError):
        ratios([1], [])
