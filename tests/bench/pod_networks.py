"""What does a pod network cost a job: its start, and MPI between its nodes?

Every round runs each kind on the host's network and in a pod, one after the other, so that what else the machine does
falls on both; a pod's figure is compared with that of its own round.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from pathlib import Path

from rich.progress import track

from tests.bench import testbed
from tests.bench.results import save

SOURCE = Path(__file__).resolve().parents[2] / "roles/main_job/files/ring.c"
FOLDER = "isthmus-bench"
PLACES = {"host": "--pod-network=none", "pod": "--pod-network"}
JOB = "--nodes=2 --ntasks-per-node=1 --mem-per-cpu=200 --time=2 --quiet"
IDLE = "OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_threads_pthreads_yield_strategy=sched_yield"
FIGURES = ("start_s", "latency_us", "bandwidth_mb_s")


def measure(cluster: testbed.TestBed, option: str) -> dict[str, float]:
    """Start an empty job and an MPI program; return the figures."""
    begin = time.monotonic()
    cluster.run(f"timeout 60 srun {option} {JOB} true")
    start_s = time.monotonic() - begin
    printed = cluster.run(f"{IDLE} timeout 60 srun --mpi=pmix {option} {JOB} {FOLDER}/ring")
    (line,) = [line for line in printed.splitlines() if line.startswith("{")]
    told = json.loads(line)
    return {"start_s": round(start_s, 3), **{key: float(told[key]) for key in FIGURES if key in told}}


def compare(rounds: list[dict[str, dict[str, float]]]) -> dict[str, dict[str, object]]:
    """Return figure -> medians in both places, and median and quartiles of the ratio within a round."""
    compared: dict[str, dict[str, object]] = {}
    for figure in FIGURES:
        ratios = [one["pod"][figure] / one["host"][figure] for one in rounds]
        low, middle, high = statistics.quantiles(ratios, n=4)
        medians = {place: round(statistics.median(one[place][figure] for one in rounds), 3) for place in PLACES}
        compared[figure] = {**medians, "ratio": round(middle, 3), "ratio_quartiles": (round(low, 3), round(high, 3))}
    return compared


def main() -> int:
    """Measure in rounds and write JSON."""
    parser = argparse.ArgumentParser(description="Compare jobs in pod networks with jobs on the host's network.")
    parser.add_argument("--rounds", type=int, default=20, help="of each kind in each place (default: %(default)s)")
    testbed.add_arguments(parser)
    arguments = parser.parse_args()
    cluster = testbed.TestBed(arguments.name, arguments.host, arguments.user)
    cluster.run(f"mkdir -p {FOLDER} && mpicc.openmpi -x c -O2 -o {FOLDER}/ring -", stdin=SOURCE.read_text())
    rounds = [
        {place: measure(cluster, option) for place, option in PLACES.items()}
        for _ in track(range(arguments.rounds), description="rounds")
    ]
    compared = compare(rounds)
    path = save("pod_networks", rounds=rounds, figures=compared)
    for figure, told in compared.items():
        print(f"{figure}: {told}")
    print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
