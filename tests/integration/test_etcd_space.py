"""An etcd whose space is used up: the daemon says so with the remedy, and the remedy helps."""

import pytest

from isthmus.clients.etcd.store import Etcd, EtcdError
from isthmus.network.state.keys import Keys
from isthmus.network.state.store import Store
from tests.support.networks.daemons import RANGES
from tests.support.servers.etcd import PREFIX, running

QUOTA = 16 * 2**20


@pytest.fixture
def cluster(tmp_path):
    with running(tmp_path, f"--quota-backend-bytes={QUOTA}") as made:
        yield made


def fill(etcd):
    """Write one key again and again, as an account may."""
    with pytest.raises(EtcdError, match="space exceeded"):
        for _ in range(200):
            etcd.put(f"{PREFIX}users/1", "x" * 1_000_000)


def test_database_without_space_is_reported_with_the_remedy(cluster):
    etcd, root = Etcd(cluster.access()), Etcd(cluster.access("root"))
    store = Store(etcd, Keys("test"), RANGES)
    store.look_at_space()
    assert (store.problem, etcd.space().quota) == ("", QUOTA)
    fill(etcd)
    store.look_at_space()
    assert "NOSPACE" in store.problem
    assert "alarm disarm" in store.problem
    revision = etcd.range(PREFIX).revision
    root.call("kv/compaction", {"revision": str(revision), "physical": True})
    root.call("maintenance/defragment", {})
    for alarm in root.call("maintenance/alarm", {"action": "GET"})["alarms"]:
        root.call("maintenance/alarm", {**alarm, "action": "DEACTIVATE"})
    etcd.put(f"{PREFIX}users/1", "short")
    store.look_at_space()
    assert store.problem == ""
