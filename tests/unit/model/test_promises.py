"""What networks promise is one table, which the documentation repeats."""

import re

import pytest

from isthmus.model.network import Driver, Promise
from tests.repo import tree

PAGE = tree.ROOT / "docs/admins/cni.md"
DRIVERS = [driver for driver in Driver if driver is not Driver.NONE]


def table():
    """Return the documentation's table: promise -> drivers that keep it."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in PAGE.read_text().splitlines()]
    (head,) = (row for row in rows if row[1:] == [str(driver) for driver in DRIVERS])
    named = {row[0]: row[1:] for row in rows if row[0] in set(Promise)}
    return {
        name: {driver for driver, cell in zip(head[1:], cells, strict=True) if re.match("yes", cell)}
        for name, cells in named.items()
    }


def test_documentation_says_the_same():
    assert table() == {str(each): {str(d) for d in DRIVERS if each in d.promises} for each in Promise}


@pytest.mark.parametrize(
    ("driver", "lacking"),
    [
        (Driver.PRIVATE, []),
        (Driver.NONE, []),
        (Driver.ROUTED, [Promise.SERVICES]),
        (Driver.CNI, [Promise.ISOLATION, Promise.SERVICES]),
    ],
)
def test_what_is_lacking_is_named(driver, lacking):
    assert driver.lacks([Promise.ISOLATION, Promise.NAMES, Promise.SERVICES]) == lacking
