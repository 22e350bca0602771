"""How long until a pod runs, until its end is seen, and how fast do many short ones go?

The many are compared, in the same run, with as many jobs of the same resources, the same kind of network and the same
image: jobs in which the same supervisor runs, driven by a script instead of a kubelet, and plain ones, in which
Apptainer starts it.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

from rich.console import Console

from tests.bench import testbed
from tests.bench.results import quantile, save
from tests.support.pods import plans

SUPERVISED = Path(__file__).with_name("supervised_rounds.py")
SCRIPT = Path(__file__).with_name("pod_rounds.py")
FOLDER = "isthmus-bench"
IMAGE = "busybox"
# What the kubelet asks for a pod of one container with 32 MiB.
PLAIN = """
set -e
image=$(isthmus pull docker://{reference})
script="#!/bin/sh
apptainer --quiet exec --contain --no-home $image true"
for number in $(seq {count}); do
    sbatch --quiet --parsable --job-name=isthmus-plain --pod-network --mem=88 --output=/dev/null <<<"$script" >/dev/null
done
while [ -n "$(squeue --me --noheader --name=isthmus-plain)" ]; do sleep 0.5; done
"""


def plain(cluster: testbed.TestBed, reference: str, count: int) -> float:
    """Submit plain jobs; return the seconds until the last has left the queue."""
    begin = time.monotonic()
    cluster.run(PLAIN.format(reference=reference, count=count))
    return time.monotonic() - begin


def supervised(cluster: testbed.TestBed, reference: str, count: int) -> dict[str, Any]:
    """Run jobs with a supervisor each; return the seconds until the last has ended, and how many ended badly."""
    folder = f"{FOLDER}/supervised"
    image = cluster.run(f"isthmus pull docker://{reference}").strip()
    plan = plans.plan(plans.container("main", "", argv=["true"], image=image))
    cluster.run(f"rm -rf {folder} && mkdir -p {folder} && cat > {folder}/plan.json", stdin=json.dumps(plan))
    cluster.run(f"cat > {folder}/rounds.py", stdin=SUPERVISED.read_text())
    reported = cluster.run(
        f"srun --quiet --pod-network --mem=600 /opt/isthmus/bin/python {folder}/rounds.py {folder} {count}"
    )
    found: dict[str, Any] = json.loads(reported.splitlines()[-1])
    cluster.run(f"rm -rf {folder}")
    return found


def pods(cluster: testbed.TestBed, reference: str, count: int, many: int) -> dict[str, Any]:
    """Run the pods; return their figures."""
    cluster.run(f"mkdir -p {FOLDER} && cat > {FOLDER}/pod_rounds.py", stdin=SCRIPT.read_text())
    reported = cluster.run(f"/opt/isthmus/bin/python {FOLDER}/pod_rounds.py {reference} {count} {many}")
    found: dict[str, Any] = json.loads(reported.splitlines()[-1])
    return found


def measure(cluster: testbed.TestBed, count: int, many: int) -> dict[str, Any]:
    """Bring the user's Kubernetes up, run all, and take it down; return the figures and what they sum up."""
    console = Console()
    reference = json.loads(cluster.run("cat /etc/isthmus/images.json"))["images"][IMAGE]["reference"]
    with console.status("isthmus up"):
        up = json.loads(cluster.run("isthmus up --json"))
    try:
        with console.status(f"{count} pods one after the other, then {many} at once"):
            taken = pods(cluster, reference, count, many)
        with console.status(f"{many} plain jobs"):
            baseline_s = plain(cluster, reference, many)
        with console.status(f"{many} jobs with a supervisor"):
            alike = supervised(cluster, reference, many)
    finally:
        cluster.run("isthmus down")
    summary = {
        name: {f"p{share:.0%}".rstrip("%"): round(quantile(values, share), 3) for share in (0.5, 0.95, 0.99)}
        for name, values in taken["singles"].items()
    }
    burst_s = taken["burst"]["seconds"]
    rates = {
        "pods_per_s": round(many / burst_s, 2),
        "supervised_jobs_per_s": round(many / alike["seconds"], 2),
        "plain_jobs_per_s": round(many / baseline_s, 2),
        "ratio": round(alike["seconds"] / burst_s, 2),
        "ratio_to_plain": round(baseline_s / burst_s, 2),
    }
    return {"up_s": up["took_s"], "summary": summary, "rates": rates, "supervised": alike, **taken}


def main() -> int:
    """Measure and write JSON."""
    parser = argparse.ArgumentParser(description="Time the start and the end of pods, and a burst of them.")
    parser.add_argument("--pods", type=int, default=200, help="pods one after the other (default: %(default)s)")
    parser.add_argument("--burst", type=int, default=500, help="pods at once (default: %(default)s)")
    testbed.add_arguments(parser)
    arguments = parser.parse_args()
    figures = measure(testbed.TestBed(arguments.name, arguments.host, arguments.user), arguments.pods, arguments.burst)
    path = save("pods", **figures)
    print(*(f"{name}: {figures[name]}" for name in ("up_s", "summary", "rates", "burst")), path, sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
