"""What do the three ways of running MPI in containers cost, against native MPI on the same nodes?

The ways are those of the paper "Applying cloud-native principles to scientific computations": fully containerized
basic, fully containerized optimized, hybrid; docs/users/examples has a job of each. Every round runs each way once, so
that what else the machine does falls on all of them; a way is compared with the native run of its own round.
"""

from __future__ import annotations

import argparse
import json
import shlex
import statistics
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pygal
from rich.progress import Progress

from tests.bench import testbed
from tests.bench.results import RESULTS, save

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "docs/users/examples"
SOURCE = ROOT / "roles/main_job/files/ring.c"
FOLDER = "isthmus-bench"
FIGURES = {"latency_us": "latency, 8 bytes", "bandwidth_mb_s": "bandwidth, 1 MiB"}
BASELINE = "native"
JOB = "#SBATCH --nodes=2 --ntasks-per-node=1 --mem-per-cpu=200 --time=5"


@dataclass(frozen=True)
class Way:
    """One way to run the program.

    Attributes:
        name: as results call it.
        script: the job in docs/users/examples; none is native.
        mpi: whose compiler made the program.
        image: the image's name in the registry.
        fakeroot: whether it is root inside.
    """

    name: str
    script: str = ""
    mpi: str = "openmpi"
    image: str = ""
    fakeroot: bool = False


WAYS = (
    Way(BASELINE),
    Way("native MPICH", mpi="mpich"),
    *(
        Way(f"{name}{', fakeroot' if fakeroot else ''}", f"mpi-{name}.sh", mpi, image, fakeroot)
        for name, mpi, image in (
            ("basic", "mpich", "mpi-plain"),
            ("optimized", "openmpi", "mpi"),
            ("hybrid", "openmpi", "debian"),
        )
        for fakeroot in (False, True)
    ),
)


def prepare(cluster: testbed.TestBed) -> dict[str, str]:
    """Compile the program with each MPI, bring the jobs, pull the images; return image name -> file."""
    cluster.run(f"mkdir -p {FOLDER}")
    for mpi in sorted({way.mpi for way in WAYS}):
        cluster.run(f"mpicc.{mpi} -x c -O2 -o {FOLDER}/ring.{mpi} -", stdin=SOURCE.read_text())
    for script in sorted({way.script for way in WAYS if way.script}):
        cluster.run(f"cat > {FOLDER}/{script}", stdin=(EXAMPLES / script).read_text())
    cluster.run(f"cat > {FOLDER}/native-openmpi.sh", stdin=f"#!/bin/bash\n{JOB}\nsrun --mpi=pmix $1\n")
    cluster.run(f"cat > {FOLDER}/native-mpich.sh", stdin=f"#!/bin/bash\n{JOB}\nsrun --mpi=pmi2 $1\n")
    known = json.loads(cluster.run("cat /etc/isthmus/images.json"))["images"]
    names = sorted({way.image for way in WAYS if way.image})
    return {name: cluster.run(f"isthmus pull docker://{known[name]['reference']}").strip() for name in names}


def run(cluster: testbed.TestBed, way: Way, images: dict[str, str]) -> dict[str, float]:
    """Run the program once and return what it measured."""
    script = way.script or f"native-{way.mpi}.sh"
    arguments = [f"./ring.{way.mpi}", *([images[way.image]] if way.image else [])]
    # Containers do not see the host's settings of Open MPI; a rank has a core here and need not sleep.
    idle = "OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_threads_pthreads_yield_strategy=sched_yield"
    variables = f"{idle} FAKEROOT={int(way.fakeroot)}"
    submit = f"{variables} timeout 120 sbatch --wait --quiet --output=run.out {script} {shlex.join(arguments)}"
    printed = cluster.run(f"cd {FOLDER} && {submit} || {{ cat run.out; exit 1; }}; grep '^{{' run.out")
    return {key: float(value) for key, value in json.loads(printed).items() if key in FIGURES}


def compare(rounds: list[dict[str, dict[str, float]]]) -> dict[str, dict[str, dict[str, Any]]]:
    """Return way -> figure -> its median, and the median and quartiles of its ratio to the baseline of its round."""
    compared: dict[str, dict[str, dict[str, Any]]] = {}
    for way in rounds[0]:
        for figure in FIGURES:
            ratios = [one[way][figure] / one[BASELINE][figure] for one in rounds]
            low, middle, high = statistics.quantiles(ratios, n=4) if len(ratios) > 1 else ratios * 3
            compared.setdefault(way, {})[figure] = {
                "median": round(statistics.median(one[way][figure] for one in rounds), 2),
                "ratio": round(middle, 3),
                "ratio_quartiles": (round(low, 3), round(high, 3)),
            }
    return compared


def plot(rounds: list[dict[str, dict[str, float]]], figure: str) -> Path:
    """Draw the ratios of one figure as boxes, a box per way (Tukey: whiskers at 1.5 quartile ranges)."""
    title = f"{FIGURES[figure]}: ratio to native, {len(rounds)} rounds"
    # A plot in the documentation loads nothing from elsewhere.
    chart = pygal.Box(title=title, box_mode="tukey", legend_at_bottom=True, disable_xml_declaration=True, js=[])
    for way in rounds[0]:
        if way != BASELINE:
            chart.add(way, [one[way][figure] / one[BASELINE][figure] for one in rounds])
    path = RESULTS / f"containers-{figure}.svg"
    chart.render_to_file(str(path))
    return path


def main() -> int:
    """Measure all ways in rounds and write JSON and plots."""
    parser = argparse.ArgumentParser(description="Compare MPI in containers with native MPI on the test bed.")
    parser.add_argument("--rounds", type=int, default=12, help="runs of each way (default: %(default)s)")
    testbed.add_arguments(parser)
    arguments = parser.parse_args()
    cluster = testbed.TestBed(arguments.name, arguments.host, arguments.user)
    images = prepare(cluster)
    rounds = []
    with Progress() as progress:
        bar = progress.add_task("rounds", total=arguments.rounds * len(WAYS))
        for _ in range(arguments.rounds):
            one = {}
            for way in WAYS:
                progress.update(bar, description=way.name)
                one[way.name] = run(cluster, way, images)
                progress.advance(bar)
            rounds.append(one)
    compared = compare(rounds)
    path = save("containers", rounds=rounds, ways=compared)
    for name, figures in compared.items():
        reported = ", ".join(f"{FIGURES[key]} {one['median']} ({one['ratio']} x)" for key, one in figures.items())
        print(f"{name}: {reported}")
    print(path, *(plot(rounds, figure) for figure in FIGURES))
    return 0


if __name__ == "__main__":
    sys.exit(main())
