"""How long the decisions about pod networks take, without etcd and kernel: addresses, documents, plans, steps, names.

Times of a shared machine say little alone, so names have a baseline in the same run: what a daemon that just started
does, which works out the names of all users.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from itertools import cycle
from pathlib import Path

from isthmus.model.network import State
from isthmus.model.node_network import NodePlan
from isthmus.network.dns.names import NodeNames
from isthmus.network.dns.records import DnsSettings
from isthmus.network.drivers.private.plan import Planner, desired
from isthmus.network.node.steps import difference
from isthmus.network.state import codec, ipam
from tests.bench import results
from tests.bench.network_state import RANGES, cluster, reread, written

REPETITIONS = 20
USERS = 1000
CHANGED = (2, 20, 200)
# In memory, as the daemon's own.
FOLDERS = Path("/dev/shm")


def median_ms(work: Callable[[], object]) -> float:
    """Return the median time of a piece of work."""
    taken = []
    for _ in range(REPETITIONS):
        begin = time.perf_counter()
        work()
        taken.append(1000 * (time.perf_counter() - begin))
    return round(statistics.median(taken), 2)


def forward_updates(at: State, nodes: int) -> int:
    """Return how many forwarding entries of c1 change when its user begins one more job, on so many other nodes."""
    request = ipam.Request(100_002, 100_000, "large", "run", tuple(at.nodes)[1 : nodes + 1])
    planner = Planner("c1")
    had, wanted = planner.plan(at), planner.plan(written(at, ipam.take(at, RANGES, request)))
    return sum(len(leg.forwards ^ had.legs[vni].forwards) for vni, leg in wanted.legs.items())


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
        "forward_updates": {size: forward_updates(at, size) for size in CHANGED},
        "steps_small_change": len(difference(had, wanted)),
        "difference_first_ms": median_ms(lambda: difference(NodePlan(), wanted)),
        "difference_small_change_ms": median_ms(lambda: difference(*planned)),
        # Nothing is shared with what was read from the kernel.
        "difference_from_kernel_ms": median_ms(lambda: difference(had, wanted)),
    }


def names(users: int) -> dict[str, object]:
    """Measure the names on a node when one user of many begins a job there, and ends it."""
    before = cluster(400, users)
    after = written(before, ipam.take(before, RANGES, ipam.Request(100_000, 1, "user1", "run", ("c1", "c2"))))
    turns = cycle([(desired(state, "c1"), state) for state in (after, before)])
    with tempfile.TemporaryDirectory(dir=FOLDERS) as name:
        settings = DnsSettings("isthmus", folder=Path(name))

        def begun() -> NodeNames:
            return NodeNames(settings, lambda: None, resolv_conf=Path(name) / "none")

        first = median_ms(lambda: begun().follow(*next(turns)))
        node, same = begun(), next(turns)
        node.follow(*same)
        idle, changed = median_ms(lambda: node.follow(*same)), median_ms(lambda: node.follow(*next(turns)))
        size = settings.all_hosts.stat().st_size
    return {
        "users": users,
        "names_bytes": size,
        "first_ms": first,
        "small_change_ms": changed,
        "small_change_to_first": round(changed / first, 3),
        "no_change_ms": idle,
        "no_change_to_first": round(idle / first, 3),
    }


def main() -> None:
    """Write results/network_logic.json."""
    parser = argparse.ArgumentParser(description="Time the decisions about pod networks, without etcd and kernel.")
    parser.add_argument("--quick", action="store_true", help="a small cluster, to see that it works")
    quick = parser.parse_args().quick
    runs = [figures(nodes) for nodes in ((400,) if quick else (400, 4000))]
    named = [names(users) for users in ((10, 100) if quick else (10, 100, USERS))]
    print(results.save("network_logic", quick=quick, repetitions=REPETITIONS, runs=runs, names=named))


if __name__ == "__main__":
    main()
