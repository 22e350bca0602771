"""Does a pod network make HPL slower? Two nodes, a rank on each, on the host's network and in pods by turns.

HPL is that of Debian's hpcc, which cannot run it alone: what HPCC times as HPL is compared, not the time of the job.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

from tests.bench import rounds, testbed
from tests.bench.pod_networks import HOST, IDLE, allocation
from tests.bench.results import save

TEMPLATE = Path(__file__).resolve().parents[2] / "roles/main_job/templates/hpccinf.txt.j2"
FOLDER = "isthmus-bench/hpl"
SHOWN = "grep -h ^HPL_Tflops= hpccoutf.txt; rm -f hpccoutf.txt"


def prepare(cluster: testbed.TestBed, unknowns: int) -> None:
    """Write HPCC's input for a grid of one by two."""
    fields = {"main_job_hpl_n": str(unknowns), "main_job_hpl_nb": "128", "_main_job_nodes": "1"}
    text = re.sub(r"\{\{ (\w+) \}\}", lambda found: fields[found[1]], TEMPLATE.read_text())
    cluster.run(f"mkdir -p {FOLDER} && cat > {FOLDER}/hpccinf.txt", stdin=text)


def main() -> int:
    """Measure in rounds and write JSON."""
    parser = argparse.ArgumentParser(description="Compare HPL in pods with HPL on the host's network.")
    parser.add_argument("--rounds", type=int, default=20, help="runs in each place (default: %(default)s)")
    parser.add_argument("--unknowns", type=int, default=3000, help="size of the matrix (default: %(default)s)")
    parser.add_argument("--quick", action="store_true", help="two small runs, to see that it works")
    testbed.add_arguments(parser)
    arguments = parser.parse_args()
    count, unknowns = (2, 500) if arguments.quick else (arguments.rounds, arguments.unknowns)
    cluster = testbed.TestBed(arguments.name, arguments.host, arguments.user)
    prepare(cluster, unknowns)
    with allocation(cluster) as step:
        hpcc = f"cd {FOLDER} && {IDLE} {step.replace('timeout 120', 'timeout 900')} --mpi=pmix"
        kinds = {"host": f"{hpcc} {HOST} hpcc; {SHOWN}", "pod": f"{hpcc} hpcc; {SHOWN}"}
        done = rounds.run(cluster, kinds, count, "HPL")
    gflops = [{place: 1000 * float(run.line.partition("=")[2]) for place, run in one.items()} for one in done]
    figures = rounds.compare(gflops, "host")
    print(figures)
    print(save("pod_hpl", quick=arguments.quick, unknowns=unknowns, count=count, gflops=gflops, figures=figures))
    return 0


if __name__ == "__main__":
    sys.exit(main())
