"""The site's own network's definition for the registry."""

from __future__ import annotations

from isthmus.filters.drivers.cni import problems
from isthmus.filters.drivers.contract import Definition

DEFINITION = Definition(problems.FILTERS, problems.problems, ranges=(problems.RANGE,))
