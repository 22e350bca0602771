"""What does a PID namespace add to the start of a job with a network?

Only the prolog reads the plugin's word `init=`, from a file of its node, and steps follow what the prolog noted. So
one node has the word and lacks it in turn, in rounds of random order, and Slurm is not reconfigured between.
"""

from __future__ import annotations

import argparse
import random
import shlex
import statistics
import sys

from rich.console import Console
from rich.progress import track

from isthmus.filters.network.layer import INIT
from tests.bench import rounds, testbed
from tests.bench.results import save

FILE = "/etc/slurm/plugstack.conf.d/isthmus.conf"
WITH, WITHOUT = "with", "without"
TIMED = (
    "import subprocess, sys, time; began = time.perf_counter(); subprocess.run(sys.argv[1:], check=True); "
    "print(time.perf_counter() - began)"
)


def words(line: str, kind: str) -> str:
    """Return the plugin's line with the word, or without."""
    kept = [word for word in line.split() if not word.startswith("init=")]
    return " ".join([*kept, *([f"init={INIT}"] if kind == WITH else [])])


def measure(login: testbed.TestBed, node: testbed.TestBed, count: int) -> list[dict[str, float]]:
    """Return kind -> seconds of `srun true` as a job of its own, for each round but the first."""
    line = node.run(f"cat {FILE}")
    job = f"srun --pod-network --nodelist={node.host} --mem=20 true"
    found = []
    try:
        for _ in track(range(count + 1), description=job):
            taken = {}
            for kind in random.sample((WITH, WITHOUT), 2):
                node.run(f"cat > {FILE}", stdin=f"{words(line, kind)}\n")
                taken[kind] = float(login.run(f"python3 -c {shlex.quote(TIMED)} {job}"))
            found.append(taken)
    finally:
        node.run(f"cat > {FILE}", stdin=line)
    return found[1:]


def main() -> int:
    """Measure and write JSON."""
    parser = argparse.ArgumentParser(description="Time the start of jobs with a PID namespace against those without.")
    parser.add_argument("--rounds", type=int, default=40, help="(default: %(default)s)")
    parser.add_argument("--node", default="c1", help="where jobs run (default: %(default)s)")
    testbed.add_arguments(parser)
    arguments = parser.parse_args()
    login = testbed.TestBed(arguments.name, arguments.host, arguments.user)
    taken = measure(login, testbed.TestBed(arguments.name, arguments.node, "root"), arguments.rounds)
    added_ms = [1000 * (each[WITH] - each[WITHOUT]) for each in taken]
    low, high = rounds.confidence(added_ms)
    compared = rounds.compare(taken, WITHOUT)
    added = {"median": round(statistics.median(added_ms), 2), "confidence_95": (round(low, 2), round(high, 2))}
    Console().print(compared, {"added_ms": added}, markup=False)
    print(save("pid_namespaces", compared=compared, added_ms=added, rounds=taken))
    return 0


if __name__ == "__main__":
    sys.exit(main())
