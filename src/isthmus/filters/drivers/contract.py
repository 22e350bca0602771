"""The deployment's side of a network driver: its filters for Ansible, and its checks of the inventory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from isthmus.filters.validate.site import Site


@dataclass(frozen=True, slots=True)
class Definition:
    """A driver.

    Attributes:
        filters: for the role, by name.
        problems: yields the inventory's problems where the cluster has the driver.
        ranges: variables with address ranges, which nothing else may overlap.
        users: of etcd, as etcd_users has them.
        cni_list: returns the list of CNI plugins of its name, which Apptainer can use too; None where it has none.
    """

    filters: Mapping[str, Callable[..., object]]
    problems: Callable[[Site], Iterator[str]]
    ranges: tuple[str, ...] = ()
    users: Sequence[Mapping[str, Any]] = ()
    cni_list: Callable[[], Mapping[str, Any]] | None = None
