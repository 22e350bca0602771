"""Partitions take groups, hosts and ranges, and refuse what Slurm would only notice at its start."""

from __future__ import annotations

from typing import Any

import pytest

from isthmus.filters.errors import InputError
from isthmus.filters.slurm.partitions import slurm_partitions

GROUPS = {"compute": ["c1", "c2", "c3"], "big": ["c3"], "controller": ["ctl"], "empty": []}
COMPUTE = ["c1", "c2", "c3"]


def render(*partitions: dict[str, Any]) -> str:
    return slurm_partitions(partitions, GROUPS, COMPUTE)


def batch(**settings: Any) -> dict[str, Any]:
    return {"name": "batch", "nodes": ["compute"], **settings}


@pytest.mark.parametrize(
    ("partition", "line"),
    [
        (batch(), "PartitionName=batch Nodes=c[1-3] State=UP"),
        (batch(default=True), "PartitionName=batch Nodes=c[1-3] Default=YES State=UP"),
        (batch(default=False), "PartitionName=batch Nodes=c[1-3] State=UP"),
        (batch(max_time="1-00:00:00"), "PartitionName=batch Nodes=c[1-3] MaxTime=1-00:00:00 State=UP"),
        (
            batch(max_time="UNLIMITED", state="DOWN"),
            "PartitionName=batch Nodes=c[1-3] MaxTime=UNLIMITED State=DOWN",
        ),
        (batch(nodes=["big", "c1"]), "PartitionName=batch Nodes=c[1,3] State=UP"),
        (batch(nodes=["c[1-2]"]), "PartitionName=batch Nodes=c[1-2] State=UP"),
        (batch(nodes=["c1", "compute"]), "PartitionName=batch Nodes=c[1-3] State=UP"),
        (
            batch(options={"OverSubscribe": "FORCE:2", "Hidden": True, "AllowGroups": ["a", "b"]}),
            "PartitionName=batch Nodes=c[1-3] State=UP OverSubscribe=FORCE:2 Hidden=YES AllowGroups=a,b",
        ),
    ],
)
def test_partition(partition: dict[str, Any], line: str) -> None:
    assert render(partition) == f"{line}\n"


def test_partitions_keep_their_order() -> None:
    lines = render(batch(name="z"), batch(name="a")).splitlines()
    assert [line.split()[0] for line in lines] == ["PartitionName=z", "PartitionName=a"]


def test_no_partitions_are_an_empty_file() -> None:
    assert render() == ""


@pytest.mark.parametrize(
    ("partition", "message"),
    [
        (batch(nodes=["c4"]), "unknown node or group in partition batch: 'c4'.*known: big, c1, c2, c3"),
        (batch(nodes=["compuet"]), "did you mean 'compute'"),
        (batch(nodes=["c[2-4]"]), "unknown node or group in partition batch: 'c4'"),
        (batch(nodes=["controller"]), "ctl in partition batch is no compute node.*group compute"),
        (batch(nodes=["ctl"]), "ctl in partition batch is no compute node"),
        (batch(nodes=["empty"]), "partition batch has no nodes"),
        (batch(nodes=[]), "partition batch has no nodes"),
        ({"name": "batch"}, "partition batch has no nodes"),
        (batch(nodes="compute"), "is text: 'compute'; write a list"),
        (batch(max_time="1 day"), "max_time of partition batch is no time: '1 day'.*d-h:m:s"),
        (batch(max_time=3600), "max_time of partition batch is not text but 3600.*quotes"),
        (batch(state="up"), "unknown state of partition batch: 'up'; did you mean 'UP'"),
        (batch(maxtime="1"), "unknown key of a partition: 'maxtime'; did you mean 'max_time'"),
        ({"nodes": ["compute"]}, "a partition lacks name"),
        (batch(options={"maxtime": "1"}), "maxtime stands in options of partition batch.*own keys"),
        (batch(options={"A B": 1}), "'A B' is no key"),
        (batch(options={"QOS": "a\nb"}), "QOS has a line break"),
    ],
)
def test_partition_is_refused(partition: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        render(partition)


def test_partition_twice_is_refused() -> None:
    with pytest.raises(InputError, match="partition 'batch' exists twice"):
        render(batch(), batch())


def test_two_defaults_are_refused() -> None:
    with pytest.raises(InputError, match="batch and long are both the default"):
        render(batch(default=True), batch(name="long", default=True))
