"""Histograms are on their page before anything was measured, with each value of their labels."""

from enum import StrEnum

from isthmus.support import metrics


class Door(StrEnum):
    """What is counted apart."""

    FRONT = "front"
    BACK = "back"


def test_each_kind_has_a_series_from_the_start():
    registry = metrics.registry()
    metrics.histogram(registry, "opening_seconds", "How long.", (0.5, 1.0), Door)
    lines = metrics.text(registry).splitlines()
    assert {f'opening_seconds_count{{door="{door}"}} 0.0' for door in Door} <= set(lines)


def test_what_was_measured_is_in_its_bucket():
    registry = metrics.registry()
    made = metrics.histogram(registry, "opening_seconds", "How long.", (0.5, 1.0))
    made.observe(0.7)
    page = metrics.text(registry)
    assert 'opening_seconds_bucket{le="0.5"} 0.0' in page
    assert 'opening_seconds_bucket{le="1.0"} 1.0' in page
