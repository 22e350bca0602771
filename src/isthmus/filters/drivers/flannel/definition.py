"""Flannel's definition for the registry."""

from __future__ import annotations

from isthmus.filters.drivers.contract import Definition
from isthmus.filters.drivers.flannel import files, problems
from isthmus.model.network import Driver

# flanneld logs in by the driver's name, and has these keys alone.
USER = {"name": str(Driver.FLANNEL), "grants": [{"prefix": f"{Driver.FLANNEL}/", "access": "readwrite"}]}
DEFINITION = Definition(
    files.FILTERS,
    problems.problems,
    ranges=(problems.RANGE,),
    users=(USER,),
    cni_list=files.network_flannel_list,
)
