"""Clusters as etcd would hold them, of any size, in memory and written to a real etcd."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from ipaddress import IPv4Address, IPv4Network
from itertools import islice
from typing import Any

from isthmus.clients.etcd.store import Etcd, Put
from isthmus.model.network import Node, Ranges, State
from isthmus.network.node.nodelist import unfold
from isthmus.network.state import codec, ipam
from isthmus.network.state.codec import Guard
from isthmus.network.state.keys import Keys

RANGES = Ranges(IPv4Network("10.64.0.0/10"))
FIRST = IPv4Address("172.16.0.1")
# The cluster of the tests' etcd.
KEYS = Keys("test")
# etcd takes 128 steps in a transaction.
BATCH = 100


def cluster(nodes: int, users: int, first: IPv4Address = FIRST) -> State:
    """Return a cluster where each of the users has one job on eight nodes; its nodes' addresses begin with `first`."""
    names = unfold(f"c[1-{nodes}]")
    members = {name: Node(name, first + index) for index, name in enumerate(names)}
    state = State(members)
    for uid in range(1, users + 1):
        some = tuple(names[(uid * 8 + index) % nodes] for index in range(8))
        state = written(state, ipam.take(state, RANGES, ipam.Request(uid, uid, f"user{uid}", "run", some)))
    return state


def written(state: State, taken: ipam.Taken) -> State:
    """Return the state with what a job took, as read from etcd."""
    user, job = (reread(value) for value in (taken.user, taken.job))
    return replace(state, users={**state.users, user.uid: user}, jobs={**state.jobs, job.id: job})


def reread(value: codec.Value) -> Any:
    """Return a value as another daemon gets it."""
    return codec.decode(KEYS, KEYS.path(codec.key_of(value)), codec.encode(value))


def fill(etcd: Etcd, state: State) -> None:
    """Write a state to an etcd that has none."""
    users, jobs = state.users.values(), state.jobs.values()
    values: Iterator[codec.Value] = iter([Guard(RANGES, 1), *state.nodes.values(), *users, *jobs])
    while batch := list(islice(values, BATCH)):
        etcd.transact({}, [Put(KEYS.path(codec.key_of(value)), codec.encode(value)) for value in batch])
