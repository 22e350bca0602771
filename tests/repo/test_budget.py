"""The stages of `make test` have a budget, and the page about it has a place for what they took."""

import re

from tests import shares
from tests.repo import tree
from tests.run import lanes

RECIPE = re.compile(r"-m tests\.run (.+)")


def test_every_stage_has_a_budget():
    (words,) = RECIPE.findall((tree.ROOT / "Makefile").read_text())
    stages = [stage for word in words.split() for lane in lanes(word) for stage in lane]
    assert {*stages, shares.TOTAL} == set(shares.budget())


def test_page_has_a_place_for_the_table():
    assert "| `lint` | 7 |" in shares.written(shares.PAGE.read_text(), "| `lint` | 7 |\n")
