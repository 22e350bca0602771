"""What does a pod network cost a job: its start, that of its steps, MPI_Init, and MPI between its nodes?

Every round runs each kind on the host's network and in a pod, in any order; a kind is compared with that on the host
in its own round. Steps are those of one allocation that has pods: they enter them, or say that they will not.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.bench import rounds, testbed
from tests.bench.results import save

SOURCE = Path(__file__).resolve().parents[2] / "roles/main_job/files/ring.c"
INIT = """\
#include <mpi.h>
int main(int argc, char **argv) { MPI_Init(&argc, &argv); return MPI_Finalize(); }
"""
FOLDER = "isthmus-bench"
HOST, POD = "--pod-network=none", "--pod-network=private"
SHAPE = "--nodes=2 --ntasks-per-node=1"
# A rank has a core here and need not sleep.
IDLE = "OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_threads_pthreads_yield_strategy=sched_yield"
FIGURES = ("latency_us", "bandwidth_mb_s")


def prepare(cluster: testbed.TestBed) -> str:
    """Compile the programs and pull the image with MPI; return its file."""
    for name, source in {"ring": SOURCE.read_text(), "init": INIT}.items():
        cluster.run(f"mkdir -p {FOLDER} && mpicc.openmpi -x c -O2 -o {FOLDER}/{name} -", stdin=source)
    known = json.loads(cluster.run("cat /etc/isthmus/images.json"))["images"]
    return cluster.run(f"isthmus pull docker://{known['mpi']['reference']}").strip()


@contextmanager
def allocation(cluster: testbed.TestBed) -> Iterator[str]:
    """Hold two nodes with pods; yield what a step's srun needs to be there."""
    reported = cluster.run(f"salloc --no-shell {POD} {SHAPE} --mem=1000 --time=60 2>&1")
    job = next(word for word in reported.split() if word.isdigit())
    try:
        yield f"timeout 120 srun --quiet --overlap --jobid={job} {SHAPE} --mem=800"
    finally:
        cluster.run(f"scancel {job}")


def starts(cluster: testbed.TestBed, count: int, image: str) -> dict[str, object]:
    """Time jobs and steps of `true`, and steps that only call MPI_Init."""
    job = f"timeout 120 srun --quiet {SHAPE} --mem=100 --time=2"
    kinds = {"host": f"{job} {HOST} true", "pod": f"{job} {POD} true"}
    found: dict[str, object] = {"job": seconds(cluster, kinds, count, "jobs")}
    with allocation(cluster) as step:
        kinds = {"host": f"{step} {HOST} true", "pod": f"{step} true"}
        found["step"] = seconds(cluster, kinds, count, "steps")
        native, container = f"{FOLDER}/init", f"apptainer exec --bind $PWD {image} {FOLDER}/init"
        kinds = {
            "native": f"{step} {HOST} --mpi=pmix {native}",
            "native, pod": f"{step} --mpi=pmix {native}",
            "container": f"{step} {HOST} --mpi=pmix {container}",
            "container, pod": f"{step} --mpi=pmix {container}",
        }
        found["mpi_init"] = seconds(cluster, kinds, count, "MPI_Init")
    return found


def seconds(cluster: testbed.TestBed, kinds: Mapping[str, str], count: int, what: str) -> dict[str, object]:
    """Compare how long commands take, with the first."""
    done = [{name: run.seconds for name, run in one.items()} for one in rounds.run(cluster, kinds, count, what)]
    return {"rounds": done, "figures": rounds.compare(done, next(iter(kinds)))}


def messages(cluster: testbed.TestBed, count: int) -> dict[str, object]:
    """Compare latency and bandwidth of messages between two nodes."""
    with allocation(cluster) as step:
        ring = f"{step} --mpi=pmix"
        kinds = {"host": f"{IDLE} {ring} {HOST} {FOLDER}/ring", "pod": f"{IDLE} {ring} {FOLDER}/ring"}
        done = rounds.run(cluster, kinds, count, "messages")
    reported = [{name: json.loads(run.line) for name, run in one.items()} for one in done]
    return {
        figure: rounds.compare([{name: float(one[name][figure]) for name in one} for one in reported], "host")
        for figure in FIGURES
    } | {"rounds": reported}


def main() -> int:
    """Measure in rounds and write JSON."""
    parser = argparse.ArgumentParser(description="Compare jobs in pod networks with jobs on the host's network.")
    parser.add_argument("--rounds", type=int, default=50, help="of each kind in each place (default: %(default)s)")
    parser.add_argument("--quick", action="store_true", help="two rounds, to see that it works")
    testbed.add_arguments(parser)
    arguments = parser.parse_args()
    count = 2 if arguments.quick else arguments.rounds
    cluster = testbed.TestBed(arguments.name, arguments.host, arguments.user)
    found = {**starts(cluster, count, prepare(cluster)), "messages": messages(cluster, count)}
    for kind in ("job", "step", "mpi_init"):
        print(kind, found[kind]["figures"])  # type: ignore[index]
    print({figure: found["messages"][figure] for figure in FIGURES})  # type: ignore[index]
    print(save("pod_networks", quick=arguments.quick, count=count, **found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
