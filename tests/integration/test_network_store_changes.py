"""What Slurm and admins write to a real etcd later: names of jobs, and nodes that left."""

import threading
from dataclasses import replace
from ipaddress import IPv4Address

import pytest

from isthmus.clients.etcd.store import Delete, Etcd, Put
from isthmus.model.network import Node
from isthmus.network.state.keys import JobKey, Keys
from isthmus.network.state.store import NodeBusyError
from tests.integration.test_network_store import ended, request
from tests.support.wait import wait


def test_name_is_written_into_the_job_and_nothing_else_changes(store):
    old = store.load()
    taken = store.take(request(1))
    store.rename({1: "train"}, old)
    at = store.load()
    assert at.state.jobs == {1: replace(taken.job, name="train")}
    assert at.state.users == {2001: taken.user}
    assert store.release(ended(at, 1)) == {1}


def test_name_brings_no_ended_job_back(store):
    store.take(request(1))
    at = store.load()
    store.release(ended(at, 1))
    store.rename({1: "train"}, at)
    assert store.load().state.jobs == {}


def test_many_names_are_written(store):
    for job in range(1, 4):
        store.take(request(job))
    store.rename({job: f"n{job}" for job in range(1, 250)})
    assert [job.name for job in store.load().state.jobs.values()] == ["n1", "n2", "n3"]


def test_node_is_forgotten_with_its_leases_and_not_with_jobs(store):
    for name in ("c1", "c2"):
        store.announce(Node(name, IPv4Address("192.0.2.1")))
    store.lease(2001, "alice", "c2", 0)
    taken = store.take(request(1, nodes=("c1", "c2")))
    with pytest.raises(NodeBusyError, match=r"jobs on c2 have addresses: 1; forget it when they have ended"):
        store.forget("c2")
    assert set(store.load().state.nodes) == {"c1", "c2"}
    store.release(ended(store.load(), taken.job.id))
    assert store.forget("c2")
    assert not store.forget("c2")
    state = store.load().state
    assert (set(state.nodes), state.leases, state.users[2001].legs) == ({"c1"}, {}, {})


def test_value_that_cannot_be_read_holds_the_feed_up_until_it_is_gone(store, cluster):
    etcd, keys = Etcd(cluster.access()), Keys("test")
    feed, seen, said = store.feed(store.load(), lambda line: said.append(line)), [], []
    threading.Thread(target=lambda: seen.extend(at.state.jobs.keys() for at in feed), daemon=True).start()
    etcd.transact({}, [Put(keys.path(JobKey(9)), "{}")])
    wait(lambda: store.problem, interval_s=0.05)
    assert "/network/jobs/9: schema is missing" in store.problem
    etcd.transact({}, [Delete(keys.path(JobKey(9)))])
    store.take(request(1))
    wait(lambda: [set(jobs) for jobs in seen], lambda got: {1} in got, interval_s=0.05)
    assert (store.problem, sum("jobs/9" in line for line in said)) == ("", 1)
    feed.close()
    etcd.close()
