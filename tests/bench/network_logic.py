"""How long the decisions about pod networks take, without etcd and kernel: addresses, documents, plans, steps."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from ipaddress import IPv4Address, IPv4Network
from typing import Any

from isthmus.model.network import Node, Ranges, State
from isthmus.model.node_network import NodePlan
from isthmus.network import codec, ipam
from isthmus.network.keys import Keys
from isthmus.network.nodelist import unfold
from isthmus.network.plan import Planner, desired
from isthmus.network.steps import difference
from tests.bench import results

REPETITIONS = 20
USERS = 1000
RANGES = Ranges(IPv4Network("10.64.0.0/10"))
KEYS = Keys("bench")


def cluster(nodes: int, users: int) -> State:
    """Return a cluster where each of the users has one job on eight nodes."""
    names = unfold(f"c[1-{nodes}]")
    members = {name: Node(name, IPv4Address("172.16.0.1") + index) for index, name in enumerate(names)}
    state = State(members)
    for uid in range(1, users + 1):
        some = tuple(names[(uid * 8 + index) % nodes] for index in range(8))
        state = written(state, ipam.take(state, RANGES, ipam.Request(uid, uid, f"user{uid}", "run", some)))
    return state


def written(state: State, taken: ipam.Taken) -> State:
    """Return the state with what a job took, as read from etcd."""
    user, job = (reread(value) for value in (taken.user, taken.job))
    return replace(state, users={**state.users, user.uid: user}, jobs={**state.jobs, job.id: job})


def reread(value: Any) -> Any:
    """Return a value as another daemon gets it."""
    return codec.decode(KEYS, KEYS.path(codec.key_of(value)), codec.encode(value))


def median_ms(work: Callable[[], object]) -> float:
    """Return the median time of a piece of work."""
    taken = []
    for _ in range(REPETITIONS):
        begin = time.perf_counter()
        work()
        taken.append(1000 * (time.perf_counter() - begin))
    return round(statistics.median(taken), 2)


def figures(nodes: int) -> dict[str, object]:
    """Measure a job on all nodes of a cluster with many users, and then a small job of the same user."""
    before = cluster(nodes, USERS)
    large = ipam.Request(100_000, 100_000, "large", "run", tuple(before.nodes))
    taken = ipam.take(before, RANGES, large)
    at = written(before, taken)
    small = ipam.Request(100_001, 100_000, "large", "run", tuple(before.nodes)[1:3])
    after = written(at, ipam.take(at, RANGES, small))
    had, wanted = desired(at, "c1"), desired(after, "c1")
    planner, states = Planner("c1"), [at, after] * REPETITIONS
    planned = planner.plan(at), planner.plan(after)
    return {
        "nodes": nodes,
        "users": USERS,
        "take_ms": median_ms(lambda: ipam.take(before, RANGES, large)),
        "take_small_ms": median_ms(lambda: ipam.take(at, RANGES, small)),
        "release_ms": median_ms(lambda: ipam.release(at, 100_000, [100_000])),
        "documents_bytes": len(codec.encode(taken.user)) + len(codec.encode(taken.job)),
        "read_documents_ms": median_ms(lambda: (reread(taken.user), reread(taken.job))),
        "plan_first_ms": median_ms(lambda: desired(after, "c1")),
        "plan_small_change_ms": median_ms(lambda: planner.plan(states.pop())),
        "forwards": sum(len(leg.forwards) for leg in wanted.legs.values()),
        "steps_small_change": len(difference(had, wanted)),
        "difference_first_ms": median_ms(lambda: difference(NodePlan(), wanted)),
        "difference_small_change_ms": median_ms(lambda: difference(*planned)),
        # Nothing is shared with what was read from the kernel.
        "difference_from_kernel_ms": median_ms(lambda: difference(had, wanted)),
    }


def main() -> None:
    """Write results/network_logic.json."""
    print(results.save("network_logic", repetitions=REPETITIONS, runs=[figures(nodes) for nodes in (400, 4000)]))


if __name__ == "__main__":
    main()
