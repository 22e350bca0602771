"""What a node's daemon counts for monitoring."""

from ipaddress import IPv4Network
from types import SimpleNamespace

import pytest

from isthmus.network.api import figures
from isthmus.network.api.figures import Preparations, cluster_figures


def test_preparations_add_up(monkeypatch):
    times = iter([0.0, 0.04, 1.0, 4.0])
    monkeypatch.setattr(figures.time, "monotonic", lambda: next(times))
    counted = Preparations()
    for _ in range(2):
        with counted.timed():
            pass
    found = counted.figures()
    assert dict(found["buckets"])["0.05"] == 1
    assert dict(found["buckets"])["5"] == dict(found["buckets"])["+Inf"] == 2
    assert (found["sum_s"], found["failures"]) == (3.04, 0)


def test_failed_preparation_has_no_time():
    counted = Preparations()
    with pytest.raises(OSError, match="etcd"), counted.timed():
        raise OSError("etcd is away")
    found = counted.figures()
    assert found["failures"] == 1
    assert dict(found["buckets"])["+Inf"] == 0


def test_addresses_that_no_block_holds_are_left():
    users = {1: SimpleNamespace(blocks=[IPv4Network("10.0.0.0/24")]), 2: SimpleNamespace(blocks=[])}
    state = SimpleNamespace(users=users, nodes={"c1": None}, jobs={})
    found = cluster_figures(state, IPv4Network("10.0.0.0/22"))
    assert (found["members"], found["addresses"], found["addresses_left"]) == (1, 1024, 768)
