"""How long does a job wait for its pod network on its slowest node, with how many nodes?

Simulated nodes run the whole daemon against a real etcd and the real kernel, and all begin one job at once. As they
share this machine's cores, two things are measured apart, and network_model puts them together:

swarm   n daemons at once, up to what the machine bears: the slowest, and the work of daemons and of etcd
alone   two daemons in a cluster of 4,000 nodes, the others known to etcd only: what a node does for a job on n nodes;
        without other users, and with 1,000 that have a job on eight nodes each

A site's slowest node is expected at alone(n) + etcd(n), for its nodes have their own cores and etcd has one. The swarm
must then come to alone(n) + (daemons(n) + etcd(n)) / cores: how far it is from that is what the model is worth.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from isthmus.clients.etcd.store import Etcd
from isthmus.model.network import Driver
from isthmus.network.api.messages import JobPrepare, JobRelease
from isthmus.network.state.store import Store
from tests.bench.network_model import DRAWN, fit, plot
from tests.bench.network_state import KEYS, RANGES, cluster, fill
from tests.bench.results import RESULTS, quantile, save
from tests.bench.simulated import FIRST, Machine, Simulation, ask_all, simulation
from tests.support.wait import wait

SWARM = (2, 4, 8, 16, 32, 64, 128)
ALONE = (2, 100, 200, 400, 800, 1600, 2800, 4000)
USERS = 1000
UID = 100_000
# Of all jobs, those that other load on this machine delayed least; the model is of these.
UNDISTURBED = 0.1
Figures = dict[str, float]


class Jobs:
    """Starts and ends jobs on simulated nodes, one after the other."""

    def __init__(self, simulated: Simulation) -> None:
        self._simulated = simulated
        self.etcd = Etcd(simulated.etcd.access())
        self._store = Store(self.etcd, KEYS, RANGES)
        self._last = 1_000_000

    def measure(self, machines: Sequence[Machine], names: Sequence[str], repetitions: int) -> Figures:
        """Run jobs on nodes of some names, of which machines run here; the first makes connections and counts not."""
        rest = sum(machine.pods for machine in machines)
        rounds, taken = [], []
        for _ in range(repetitions + 1):
            seconds, work = self._one(machines, tuple(names))
            wait(lambda: sum(machine.pods for machine in machines) == rest, timeout_s=300, interval_s=0.2)
            rounds.append({"median_s": statistics.median(seconds), "slowest_s": seconds[-1], **work})
            taken += seconds if len(rounds) > 1 else []
        # The work of programs is counted in ticks of the clock, which only a mean divides.
        middle = {key: statistics.mean if key.endswith("cpu_s") else statistics.median for key in rounds[0]}
        figures = {key: round(middle[key](one[key] for one in rounds[1:]), 5) for key in rounds[0]}
        undisturbed = quantile([one["slowest_s"] for one in rounds[1:]], UNDISTURBED)
        tails = {"p99_s": round(quantile(taken, 0.99), 4), "undisturbed_s": round(undisturbed, 4)}
        return {**figures, **tails, "jobs": repetitions, "load": os.getloadavg()[0]}

    def _one(self, machines: Sequence[Machine], names: tuple[str, ...]) -> tuple[list[float], Figures]:
        """Run one job; return the seconds of each node, and the work of one daemon and of etcd."""
        self._last += 1
        before, etcd_before = sum(machine.cpu_s for machine in machines), self._simulated.etcd_cpu_s
        seconds = ask_all(machines, JobPrepare(self._last, UID, "user", "job", names, Driver.PRIVATE, timeout_s=100))
        worked = sum(machine.cpu_s for machine in machines) - before
        work = {"daemon_cpu_s": worked / len(machines), "etcd_cpu_s": self._simulated.etcd_cpu_s - etcd_before}
        ask_all(machines, JobRelease(self._last))
        at = self._store.load()
        self._store.release({self._last: at.jobs()[self._last]}, at)
        return seconds, work


def swarm(sizes: Sequence[int], repetitions: int) -> dict[int, Figures]:
    """Measure n daemons at once, for each n."""
    found = {}
    with tempfile.TemporaryDirectory() as folder, simulation(Path(folder)) as simulated:
        jobs = Jobs(simulated)
        for size in sizes:
            machines = simulated.grow(size)
            names = [machine.node.name for machine in machines]
            found[size] = jobs.measure(machines, names, repetitions)
            print(f"swarm of {size}: {found[size]}", flush=True)
    return found


def alone(sizes: Sequence[int], repetitions: int, users: int) -> dict[int, Figures]:
    """Measure two daemons of a cluster, for jobs on n of its nodes."""
    state, found = cluster(max(sizes), users, FIRST), {}
    with tempfile.TemporaryDirectory() as folder, simulation(Path(folder)) as simulated:
        jobs = Jobs(simulated)
        fill(jobs.etcd, state)
        machines = simulated.grow(2)
        for size in sizes:
            found[size] = jobs.measure(machines, tuple(state.nodes)[:size], repetitions)
            print(f"job on {size} nodes, {users} users: {found[size]}", flush=True)
    return found


def measure(arguments: argparse.Namespace) -> dict[str, Any]:
    """Measure everything; return what is kept of it."""
    sizes, repetitions, users = arguments.swarm, arguments.jobs, USERS
    extended: Sequence[int] = ALONE
    if arguments.quick:
        sizes, extended, repetitions, users = (2, 4, 8), (2, 50, 100), 3, 50
    one, crowded = (alone(extended, repetitions, each) for each in (0, users))
    many = swarm(sizes, repetitions)
    return {"swarm": many, "alone": one, "alone_crowded": crowded, "users": users, "cores": os.cpu_count() or 1}


def kept(path: Path) -> dict[str, Any]:
    """Return what was measured earlier."""
    reported = json.loads(path.read_text())
    tables = {
        key: {int(size): one for size, one in reported[key].items()} for key in ("swarm", "alone", "alone_crowded")
    }
    return {**tables, "users": reported["users"], "cores": reported["machine"]["cores"], "measured": reported["date"]}


def main() -> int:
    """Measure, fit, draw; write JSON."""
    parser = argparse.ArgumentParser(description="Time the set-up of pod networks on simulated nodes, and extend it.")
    parser.add_argument("--swarm", type=int, nargs="+", default=SWARM, help="numbers of nodes (default: %(default)s)")
    parser.add_argument("--jobs", type=int, default=20, help="of each size (default: %(default)s)")
    parser.add_argument("--quick", action="store_true", help="few nodes and jobs, to see that it works")
    parser.add_argument("--kept", type=Path, metavar="JSON", help="fit and draw what was measured, measure nothing")
    arguments = parser.parse_args()
    found = kept(arguments.kept) if arguments.kept else measure(arguments)
    model = fit(found["swarm"], found["alone"], found["cores"])
    expected = {nodes: round(model.site(nodes), 3) for nodes in DRAWN}
    met = {nodes: round(model.swarm(nodes) / figure["undisturbed_s"], 2) for nodes, figure in found["swarm"].items()}
    print(f"expected on a site: {expected}\nmodel / measured in the swarm: {met}")
    if not arguments.kept:
        reported = {"model": asdict(model), "expected_s": expected, "model_to_measured": met}
        print(save("network_scale", quick=arguments.quick, **found, **reported))
    name = "network_scale_quick" if arguments.quick else "network_scale"
    plot(RESULTS / f"{name}.svg", model, found["swarm"], found["alone"])
    return 0


if __name__ == "__main__":
    sys.exit(main())
