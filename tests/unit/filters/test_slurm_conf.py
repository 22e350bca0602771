"""Settings are merged without regard to case and rendered as Slurm reads them."""

from __future__ import annotations

import pytest

from isthmus.filters.errors import InputError
from isthmus.filters.slurm.conf import slurm_conf, slurm_settings, slurm_widened, slurm_widened_mark


@pytest.mark.parametrize(
    ("defaults", "extra", "merged"),
    [
        ({"A": 1, "B": 2}, {}, {"A": 1, "B": 2}),
        ({"A": 1, "B": 2}, {"B": 3, "C": 4}, {"A": 1, "B": 3, "C": 4}),
        ({"SlurmdTimeout": 300}, {"slurmdtimeout": 20}, {"SlurmdTimeout": 20}),
        ({"A": 1, "B": 2}, {"a": "omit"}, {"B": 2}),
        ({"A": "omit"}, {}, {}),
        ({}, {"C": "omit"}, {}),
    ],
)
def test_settings_merge(defaults: dict[str, object], extra: dict[str, object], merged: dict[str, object]) -> None:
    assert slurm_settings(defaults, extra) == merged


def test_settings_leave_the_defaults_untouched() -> None:
    defaults = {"A": 1}
    slurm_settings(defaults, {"A": 2})
    assert defaults == {"A": 1}


def test_settings_refuse_one_key_in_two_spellings() -> None:
    with pytest.raises(InputError, match=r"SlurmUser and slurmuser are the same key.*keep one"):
        slurm_settings({}, {"SlurmUser": "a", "slurmuser": "b"})


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "YES"),
        (False, "NO"),
        (0, "0"),
        (300, "300"),
        (0.5, "0.5"),
        ("affinity,cgroup", "affinity,cgroup"),
        (["a", "b"], "a,b"),
        (["a", 1, True], "a,1,YES"),
    ],
)
def test_conf_value(value: object, text: str) -> None:
    assert slurm_conf({"Key": value}) == f"Key={text}\n"


def test_conf_keeps_the_order() -> None:
    assert slurm_conf({"B": 1, "A": 2}) == "B=1\nA=2\n"


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("A", "x\nSlurmUser=root", "A has a line break.*one line"),
        ("A", ["x", "y\r"], "A has a line break"),
        ("A", "", "A has no value.*omit"),
        ("A", " ", "A has no value"),
        ("A", [], "A has no value"),
        ("A", None, "A is a NoneType.*give text"),
        ("A", {"b": 1}, "A is a dict"),
        ("A B", 1, "'A B' is no key"),
        ("A=B", 1, "'A=B' is no key"),
        ("", 1, "'' is no key"),
    ],
)
def test_conf_refuses(key: str, value: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        slurm_conf({key: value})


def test_timeouts_are_raised_for_an_upgrade_and_never_lowered() -> None:
    settings = {"SlurmdTimeout": 20, "SlurmctldTimeout": 4000, "A": 1}
    assert slurm_widened(settings, 1800) == {"SlurmdTimeout": 1800, "SlurmctldTimeout": 4000, "A": 1}
    assert slurm_widened(settings, 0) == settings
    assert (slurm_widened_mark(1800), slurm_widened_mark(0)) == ("# Widened for an upgrade.\n", "")
