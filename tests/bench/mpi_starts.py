"""Does every start of an MPI program succeed?

Open MPI may crash in MPI_Init when a message arrives before the receiver knows its communicator, which
happens in a few of a hundred runs and only under load; so several loops run at once and hundreds of runs
are counted. The loops run on the submit host: nothing but Slurm and MPI is in the way. A shape 2x2 is two
ranks on each of two nodes.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from rich.progress import Progress

from tests.bench import testbed
from tests.bench.results import save

HERE = Path(__file__).parent
SHAPES = {"1x2": (1, 2), "2x2": (2, 2)}
REASONS_KEPT = 10


def prepare(cluster: testbed.TestBed) -> None:
    """Compile the program and leave the loop's script where it runs."""
    cluster.run("mkdir -p isthmus-bench")
    cluster.run("mpicc -x c -O2 -Wall -o isthmus-bench/mpi_start -", stdin=(HERE / "mpi_start.c").read_text())
    cluster.run("cat > isthmus-bench/mpi_starts.sh", stdin=(HERE / "mpi_starts.sh").read_text())


def starts(cluster: testbed.TestBed, shape: str, runs: int, loops: int) -> Iterator[str]:
    """Yield the outcome of each start as it comes: "0", or a status and the reason."""
    ranks, nodes = SHAPES[shape]
    each = math.ceil(runs / loops)
    yield from cluster.lines(f"bash isthmus-bench/mpi_starts.sh {loops} {each} {ranks} {nodes}")


def measure(cluster: testbed.TestBed, shape: str, runs: int, loops: int, progress: Progress) -> dict[str, object]:
    """Count clean and failed starts of one shape."""
    bar = progress.add_task(shape, total=math.ceil(runs / loops) * loops)
    begin = time.monotonic()
    clean, reasons = 0, []
    for outcome in starts(cluster, shape, runs, loops):
        if outcome == "0":
            clean += 1
        else:
            reasons.append(outcome)
        progress.update(bar, advance=1, description=f"{shape}: {clean} clean, {len(reasons)} failed")
    seconds = round(time.monotonic() - begin, 1)
    total = clean + len(reasons)
    return {
        "runs": total,
        "clean": clean,
        "failed": len(reasons),
        "seconds": seconds,
        "why": reasons[:REASONS_KEPT],
    }


def main() -> int:
    """Measure each shape; the exit status tells whether all starts were clean."""
    parser = argparse.ArgumentParser(description="Count failing starts of Open MPI programs on the test bed.")
    parser.add_argument("--runs", type=int, default=501, help="starts of each shape (default: %(default)s)")
    parser.add_argument("--loops", type=int, default=3, help="loops at once (default: %(default)s)")
    parser.add_argument("--shapes", nargs="+", choices=SHAPES, default=list(SHAPES), help="ranks per node x nodes")
    testbed.add_arguments(parser)
    arguments = parser.parse_args()
    cluster = testbed.TestBed(arguments.name, arguments.host, arguments.user)
    prepare(cluster)
    with Progress() as progress:
        figures = {
            shape: measure(cluster, shape, arguments.runs, arguments.loops, progress) for shape in arguments.shapes
        }
    path = save("mpi_starts", loops=arguments.loops, shapes=figures)
    short = [shape for shape, figure in figures.items() if figure["clean"] < arguments.runs]
    print(f"{path}: " + ", ".join(f"{shape} {f['clean']}/{f['runs']} clean" for shape, f in figures.items()))
    return 1 if short else 0


if __name__ == "__main__":
    sys.exit(main())
