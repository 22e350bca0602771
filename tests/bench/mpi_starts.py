"""Does every start of an MPI program succeed?

Open MPI may crash in MPI_Init when a message arrives before the receiver knows its communicator, which
happens in a few of a hundred runs and only under load; so several loops run at once and hundreds of runs
are counted. The loops run on the submit host: nothing but Slurm and MPI is in the way. A shape 2x2 is two
ranks on each of two nodes. In pods each start is a job with a network of its own, and further jobs with pods, which
know nothing of MPI, come and go on the same nodes.
"""

from __future__ import annotations

import argparse
import math
import shlex
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import product, starmap
from pathlib import Path
from typing import Any

from rich.progress import Progress

from tests.bench import testbed
from tests.bench.results import save

HERE = Path(__file__).parent
SHAPES = {"1x2": (1, 2), "2x2": (2, 2)}
# How Slurm starts the ranks of each MPI.
MPIS = {"openmpi": "pmix", "mpich": "pmi2"}
PLACES = {"host": "--pod-network=none", "pod": "--pod-network=private"}
REASONS_KEPT = 10
# In a log, which has no progress bar.
REPORT_EVERY = 50


def prepare(cluster: testbed.TestBed) -> None:
    """Compile the program and leave the loop's script where it runs."""
    cluster.run("mkdir -p isthmus-bench")
    for mpi in MPIS:
        compile_it = f"mpicc.{mpi} -x c -O2 -Wall -o isthmus-bench/mpi_start.{mpi} -"
        cluster.run(compile_it, stdin=(HERE / "mpi_start.c").read_text())
    cluster.run("cat > isthmus-bench/mpi_starts.sh", stdin=(HERE / "mpi_starts.sh").read_text())


@dataclass(frozen=True)
class Kind:
    """What is started: where, with which MPI, in which shape."""

    place: str
    mpi: str
    shape: str

    def __str__(self) -> str:
        """Name it as results do."""
        return f"{self.place}, {self.mpi}, {self.shape}"


def starts(cluster: testbed.TestBed, kind: Kind, runs: int, loops: int, others: int) -> Iterator[str]:
    """Yield the outcome of each start as it comes: "0", or a status and the reason."""
    ranks, nodes = SHAPES[kind.shape]
    words = [loops, math.ceil(runs / loops), ranks, nodes, kind.mpi, MPIS[kind.mpi], PLACES[kind.place], others]
    yield from cluster.lines(f"bash isthmus-bench/mpi_starts.sh {shlex.join(map(str, words))}")


def measure(outcomes: Iterable[str], total: int, kind: Kind, progress: Progress) -> dict[str, Any]:
    """Count clean and failed starts of one kind."""
    bar = progress.add_task(str(kind), total=total)
    begin = time.monotonic()
    clean, reasons = 0, []
    for outcome in outcomes:
        if outcome == "0":
            clean += 1
        else:
            reasons.append(outcome)
        reported = f"{kind}: {clean} clean, {len(reasons)} failed"
        progress.update(bar, advance=1, description=reported)
        if not progress.console.is_terminal and (clean + len(reasons)) % REPORT_EVERY == 0:
            print(reported, flush=True)
    return {
        "runs": clean + len(reasons),
        "clean": clean,
        "failed": len(reasons),
        "seconds": round(time.monotonic() - begin, 1),
        "why": reasons[:REASONS_KEPT],
    }


def main() -> int:
    """Measure each kind; the exit status says whether all starts were clean."""
    parser = argparse.ArgumentParser(description="Count failing starts of MPI programs on the test bed.")
    parser.add_argument("--runs", type=int, default=501, help="starts of each kind (default: %(default)s)")
    parser.add_argument("--loops", type=int, default=3, help="loops at once (default: %(default)s)")
    parser.add_argument("--others", type=int, default=2, help="loops of other jobs beside pods (default: %(default)s)")
    parser.add_argument("--shapes", nargs="+", choices=SHAPES, default=list(SHAPES), help="ranks per node x nodes")
    parser.add_argument("--mpis", nargs="+", choices=MPIS, default=list(MPIS), help="which MPI")
    parser.add_argument("--places", nargs="+", choices=PLACES, default=list(PLACES), help="which network")
    parser.add_argument("--quick", action="store_true", help="six starts of each kind, to see that it works")
    testbed.add_arguments(parser)
    arguments = parser.parse_args()
    cluster = testbed.TestBed(arguments.name, arguments.host, arguments.user)
    prepare(cluster)
    runs, loops = 6 if arguments.quick else arguments.runs, arguments.loops
    figures = {}
    with Progress() as progress:
        for kind in starmap(Kind, product(arguments.places, arguments.mpis, arguments.shapes)):
            outcomes = starts(cluster, kind, runs, loops, arguments.others if kind.place == "pod" else 0)
            figures[str(kind)] = measure(outcomes, math.ceil(runs / loops) * loops, kind, progress)
            # Hours of counting are not lost with the connection.
            path = save("mpi_starts", quick=arguments.quick, loops=loops, others=arguments.others, kinds=figures)
    short = [kind for kind, figure in figures.items() if figure["clean"] < runs]
    print(f"{path}: " + ", ".join(f"{kind} {f['clean']}/{f['runs']} clean" for kind, f in figures.items()))
    return 1 if short else 0


if __name__ == "__main__":
    sys.exit(main())
