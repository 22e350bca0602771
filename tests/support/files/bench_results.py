"""Results of `isthmus bench` as a perfect cluster would have them: MPIJobs and pods take a little longer."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from isthmus.bench import about, plan
from isthmus.bench.launches import Column
from isthmus.bench.plan import Cluster, Plain, Run
from isthmus.bench.results import Document, Result
from isthmus.bench.sizes import SIZES, Table

ABOUT = {
    "cluster": "test",
    "nodes": {"count": 4, "cpus": 96, "memory_mib": 24576},
    "machine": {"processor": "A & B <1>", "cores": 2, "memory_mib": 24000, "kernel": "6.18.0", "load": 0.5},
    "versions": {"slurm": "24.11.5", "openmpi": "5.0.7"},
    "openmpi_settings": {"OMPI_MCA_mpi_yield_when_idle": "1"},
    "image": "ctl:5000/workloads/bench-openmpi:1",
}
SLOWER = {
    Column.MPIJOB: 1.01,
    Column.POD: 1.005,
    Column.CONTAINER: 1.002,
    Column.CONTAINER_NETWORK: 1.004,
    Column.PLAIN: 1.02,
}
PLAIN = Plain(nodes=4, cpus=2, memory_mib=24000, programs=("containerd 1.7.24", "kubelet v1.36.3"), alone=True)


def document(rounds: int = 6, cluster: Cluster | None = None) -> Document:
    """Return a whole document."""
    cluster = cluster or Cluster(4, 96, 24576)
    made = plan.make(Table, SIZES["smoke"], cluster, rounds)
    context = ABOUT | ({"plain": about.beside(cluster.plain)} if cluster.plain else {})
    return Document("smoke", context, made.left_out, tuple(result(run) for run in made.runs))


def failed(run: Run, words: str) -> Result:
    """Return the result of a run that failed."""
    return replace(result(run), error=words)


def result(run: Run) -> Result:
    """Return the result of a run."""
    launch = run.launch
    factor = SLOWER.get(launch.column, 1.0) * (1 + 0.001 * run.round)
    points = [[size, 0.5 * size / factor, 2 * factor + size / 1000] for size in (1, 8, 64, 512, 1024)]
    figures = {
        "program": launch.program[0],
        "ranks": launch.ranks,
        "seconds": 2 * factor,
        "gflops": launch.ranks / factor,
        "mops": 20 * launch.ranks / factor,
        "points": points,
        "verified": True,
    }
    steps = tuple(0.5 * factor + 0.01 * step for step in range(launch.steps if launch.steps > 1 else 0))
    cell = (run.round, str(launch.table), launch.row, str(launch.column))
    times: dict[str, Any] = {
        "end_s": 2 * factor + 3 * launch.column.is_kubernetes,
        "start_s": 0.5,
        "program_s": 2 * factor,
    }
    return Result(*cell, when="2026-11-24T08:00:00Z", figures=figures, steps_s=steps, load=0.4, **times)
