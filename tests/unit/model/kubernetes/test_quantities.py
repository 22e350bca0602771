"""Quantities of Kubernetes, exactly."""

from fractions import Fraction

import pytest

from isthmus.model.kubernetes.quantities import parse, whole


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0),
        ("1", 1),
        (2, 2),
        (0.5, Fraction(1, 2)),
        ("+3", 3),
        ("-1", -1),
        ("1.", 1),
        (".5", Fraction(1, 2)),
        ("250m", Fraction(1, 4)),
        ("1n", Fraction(1, 10**9)),
        ("5u", Fraction(5, 10**6)),
        ("2k", 2000),
        ("2M", 2 * 10**6),
        ("1Ki", 1024),
        ("1.5Gi", 3 * 2**29),
        ("1E", 10**18),
        ("1Ei", 2**60),
        ("1e3", 1000),
        ("1E3", 1000),
        ("12e-1", Fraction(6, 5)),
    ],
)
def test_quantity_is_read_exactly(text, value):
    assert parse(text) == value


@pytest.mark.parametrize("text", ["", "m", "1 Gi", "1gi", "Gi", "1e", "1ee3", "0x10", "1,5", "1e999999999"])
def test_what_is_no_quantity_is_refused(text):
    with pytest.raises(ValueError, match="is no quantity; write"):
        parse(text)


@pytest.mark.parametrize(
    ("text", "divisor", "count"),
    [("250m", "1", 1), ("250m", "1m", 250), ("1Gi", "1Mi", 1024), ("1500M", "1Gi", 2), ("3", "0", 3), ("0", "1", 0)],
)
def test_divisors_are_counted_upwards(text, divisor, count):
    assert whole(text, divisor) == count
