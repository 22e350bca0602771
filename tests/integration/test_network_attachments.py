"""Jobs of Flannel's network on a real etcd: noted at once, reported by each node, forgotten as a whole."""

from ipaddress import IPv4Address

import pytest

from isthmus.model.network import Attachment, Driver
from isthmus.network.state.ipam import Request
from isthmus.network.state.keys import JobKey
from isthmus.network.state.store import EndedError

ALICE = 2001
NODES = ("c1", "c2")


def take(store, job=1, nodes=NODES, driver=Driver.FLANNEL):
    return store.take(Request(job, ALICE, "alice", "run", nodes, driver=driver))


def attach(store, job=1, node="c1", last=2):
    return store.attach(Attachment(job, node, IPv4Address(f"10.128.1.{last}")))


def test_addresses_are_known_as_nodes_report_them(store):
    take(store)
    assert attach(store, node="c2")
    state = store.load().state
    assert state.addresses(state.jobs[1]) == (None, IPv4Address("10.128.1.2"))


def test_telling_again_writes_nothing(store):
    take(store)
    attach(store)
    revision = store.load().state.revision
    assert not attach(store)
    assert take(store).new is False
    assert store.load().state.revision == revision


@pytest.mark.parametrize("driver", [Driver.PRIVATE, Driver.FLANNEL])
def test_nobody_reports_a_job_that_is_not_there(store, driver):
    take(store, 1, nodes=("c2",), driver=driver)
    for job in (1, 2):
        with pytest.raises(EndedError, match=f"job {job} is not in etcd"):
            attach(store, job)
    assert not store.load().state.attachments


def test_attachments_end_with_their_job_and_no_others(store):
    for job in (1, 11):
        take(store, job)
        for node in NODES:
            attach(store, job, node, last=job + 2)
    at = store.load()
    assert store.release({1: at.revision_of(JobKey(1))}) == {1}
    assert store.load().state.attachments.keys() == {(11, "c1"), (11, "c2")}


def test_job_on_other_nodes_begins_without_attachments(store):
    take(store)
    attach(store)
    take(store, nodes=("c2", "c3"))
    assert not store.load().state.attachments


def test_old_snapshot_brings_no_attachment_of_an_ended_job(store):
    take(store)
    old = store.load()
    store.release({1: old.revision_of(JobKey(1))})
    with pytest.raises(EndedError):
        store.attach(Attachment(1, "c1", IPv4Address("10.128.1.2")), old)
    assert not store.load().state.attachments
