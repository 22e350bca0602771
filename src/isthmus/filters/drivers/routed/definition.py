"""The routed network's definition for the registry."""

from __future__ import annotations

from isthmus.filters.drivers.contract import Definition
from isthmus.filters.drivers.routed import problems

DEFINITION = Definition(problems.FILTERS, problems.problems, ranges=(problems.RANGE,))
