"""Metrics of a node's daemon: numbers only, without users or jobs."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from ipaddress import IPv4Network
from threading import Lock
from typing import Any

from isthmus.model.network import State

# Upper bounds of the histogram, in seconds; Slurm's prolog waits no longer than the last but one.
BOUNDS_S = (0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, float("inf"))


class Preparations:
    """How long jobs' networks took to make on this node, and how many could not be; may be used by several threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._buckets = [0] * len(BOUNDS_S)
        self._sum_s = 0.0
        self._failures = 0

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Count what the block does: its time where it ends well, a failure where it raises."""
        begun = time.monotonic()
        try:
            yield
        except BaseException:
            with self._lock:
                self._failures += 1
            raise
        taken_s = time.monotonic() - begun
        with self._lock:
            self._sum_s += taken_s
            self._buckets[next(place for place, bound in enumerate(BOUNDS_S) if taken_s <= bound)] += 1

    def figures(self) -> Mapping[str, Any]:
        """Return the counts; those of `buckets` add up, as Prometheus has them."""
        with self._lock:
            counts, sum_s, failures = list(self._buckets), self._sum_s, self._failures
        within = [sum(counts[: place + 1]) for place in range(len(counts))]
        # JSON has no infinity, Prometheus' word for it is this.
        names = [f"{bound:g}" if bound < float("inf") else "+Inf" for bound in BOUNDS_S]
        return {"buckets": list(zip(names, within, strict=True)), "sum_s": round(sum_s, 6), "failures": failures}


def cluster_figures(state: State, pods: IPv4Network) -> Mapping[str, int]:
    """Return what the whole cluster has, as this node knows it: how many addresses no user's block holds yet."""
    taken = sum(block.num_addresses for user in state.users.values() for block in user.blocks)
    return {
        "members": len(state.nodes),
        "users": len(state.users),
        "jobs": len(state.jobs),
        "addresses": pods.num_addresses,
        "addresses_left": max(0, pods.num_addresses - taken),
    }
