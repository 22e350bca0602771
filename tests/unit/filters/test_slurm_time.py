"""Time limits are read as Slurm reads them; what YAML has turned into a number is refused."""

from __future__ import annotations

import pytest

from isthmus.filters.errors import InputError
from isthmus.filters.slurm.time_limits import time_minutes


@pytest.mark.parametrize(
    ("text", "minutes"),
    [
        ("0", 0),
        ("90", 90),
        ("90:00", 90),
        ("90:01", 91),
        ("1:30:00", 90),
        ("100:00:30", 6001),
        ("1-0", 1440),
        ("1-12:30", 2190),
        ("2-01:00:59", 2941),
        ("UNLIMITED", None),
        ("infinite", None),
    ],
)
def test_time_minutes(text: str, minutes: int | None) -> None:
    assert time_minutes("MaxTime", text) == minutes


@pytest.mark.parametrize(
    "text",
    ["", "1h", "1:60", "1:5", "1:60:00", "1:00:60", "1-24", "1-0:60", "-1", "1-", "1d", "1 ", "٣", "never"],
)
def test_time_refuses_other_text(text: str) -> None:
    with pytest.raises(InputError, match=r"MaxTime is no time.*write min"):
        time_minutes("MaxTime", text)


@pytest.mark.parametrize("value", [3600, 1.5, None, True])
def test_time_refuses_what_yaml_already_read(value: object) -> None:
    with pytest.raises(InputError, match=r"MaxTime is not text.*in quotes"):
        time_minutes("MaxTime", value)
