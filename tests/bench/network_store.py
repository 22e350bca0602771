"""What a job's addresses cost in a real etcd that holds a large cluster with many users.

A job on all nodes takes its addresses in one transaction; another client notes when its watch has shown them.
etcd waits for its disk as on a site, and is one member: of three, the second fastest disk and a round trip count.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from isthmus.clients.etcd.store import Etcd
from isthmus.network.state import ipam
from isthmus.network.state.store import Store
from isthmus.network.state.view import View
from tests.bench import results
from tests.bench.network_state import KEYS, RANGES, cluster, fill
from tests.support.servers.etcd import AS_DEPLOYED, Cluster, running

USERS = 1000
UID, JOB = 100_000, 1_000_000


class Clients:
    """Who takes addresses, and who watches; each with a connection of its own."""

    def __init__(self, etcd: Cluster) -> None:
        self.taker, self.watcher = (Store(Etcd(etcd.access()), KEYS, RANGES) for _ in range(2))
        self.view = View(self.watcher.load())
        self.feed = self.watcher.feed(self.view.snapshot)
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        for snapshot in self.feed:
            self.view.set(snapshot)

    def close(self) -> None:
        """Watch no longer."""
        self.feed.close()
        self._thread.join(10)

    def job(self, number: int, nodes: tuple[str, ...]) -> dict[str, float]:
        """Take addresses and give them back; return milliseconds of each."""
        known = self.view.snapshot
        begin = time.perf_counter()
        self.taker.take(ipam.Request(number, UID, "user", "job", nodes), known)
        taken = time.perf_counter()
        assert self.view.wait(lambda state: number in state.jobs, 60)
        seen, at = time.perf_counter(), self.view.snapshot
        self.taker.release({number: at.jobs()[number]}, at)
        released = time.perf_counter()
        assert self.view.wait(lambda state: number not in state.jobs, 60)
        spans = {"take_ms": taken - begin, "seen_ms": seen - begin, "release_ms": released - seen}
        return {key: 1000 * span for key, span in spans.items()}


@contextmanager
def durable() -> Iterator[Cluster]:
    """Run an etcd that waits for its disk."""
    with tempfile.TemporaryDirectory() as folder, running(Path(folder), *AS_DEPLOYED) as etcd:
        yield etcd


def figures(nodes: int, repetitions: int) -> dict[str, object]:
    """Measure jobs on all nodes of a cluster, and on two."""
    state = cluster(nodes, USERS)
    with durable() as etcd:
        fill(Etcd(etcd.access()), state)
        with closing(Clients(etcd)) as clients:
            begin = time.perf_counter()
            clients.taker.load()
            found: dict[str, object] = {"nodes": nodes, "users": USERS, "load_ms": 1000 * (time.perf_counter() - begin)}
            for kind, names in {"all": tuple(state.nodes), "two": tuple(state.nodes)[:2]}.items():
                rounds = [clients.job(JOB + number, names) for number in range(repetitions + 1)]
                # The first makes the user and connections.
                found[kind] = {key: summed([one[key] for one in rounds[1:]]) for key in rounds[0]}
    print(found, flush=True)
    return found


def summed(taken: list[float]) -> dict[str, float]:
    """Return the median and the 99th percentile."""
    return {"median": round(statistics.median(taken), 1), "p99": round(results.quantile(taken, 0.99), 1)}


def main() -> None:
    """Measure clusters of two sizes and write JSON."""
    parser = argparse.ArgumentParser(description="Time the addresses of jobs in a real etcd with 1,000 users.")
    parser.add_argument("--jobs", type=int, default=100, help="of each size (default: %(default)s)")
    parser.add_argument("--quick", action="store_true", help="few jobs and a small cluster, to see that it works")
    arguments = parser.parse_args()
    sizes, repetitions = ((400,), 5) if arguments.quick else ((400, 4000), arguments.jobs)
    runs = [figures(nodes, repetitions) for nodes in sizes]
    print(results.save("network_store", quick=arguments.quick, jobs=repetitions, runs=runs))


if __name__ == "__main__":
    main()
