"""Pods on two test beds, each deployed from a tree of its own, by turns: what a change of the tree cost or saved.

    NAME=before make testbed    # in a clone of the commit to compare with
    make testbed                # here
    python -m tests.bench.pod_trees before isthmus

While one is measured the other's user has no Kubernetes. Both run the client of this tree, which imports what is
installed on its bed.
"""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from rich.console import Console

from tests.bench import testbed
from tests.bench.reference import CLIENT, FOLDER, ratios, run_client
from tests.bench.results import save


def measure(arguments: argparse.Namespace) -> dict[str, Any]:
    """Measure pairs, each in another order."""
    console = Console()
    beds = {name: testbed.TestBed(name, arguments.host, arguments.user) for name in (arguments.before, arguments.after)}
    pairs = []
    for number in range(arguments.pairs):
        pair = {}
        for name in sorted(beds, reverse=number % 2 == 1):
            bed = beds[name]
            image = json.loads(bed.run("cat /etc/isthmus/images.json"))["images"]["busybox"]["reference"]
            bed.run(f"mkdir -p {FOLDER} && cat > {FOLDER}/pod_rounds.py", stdin=CLIENT.read_text())
            up_s = json.loads(bed.run("isthmus up --json"))["took_s"]
            try:
                pair[name] = {"up_s": up_s, **run_client(bed, image, "", arguments.pods, arguments.burst)}
            finally:
                bed.run("isthmus down")
        console.print(f"pair {number + 1}", pair)
        pairs.append(pair)
    return {"pairs": pairs, "ratios": ratios(pairs, arguments.after, arguments.before)}


def main() -> int:
    """Measure and write JSON."""
    parser = argparse.ArgumentParser(description="Compare pods on two test beds of different trees.")
    parser.add_argument("before", help="test bed of the tree to compare with")
    parser.add_argument("after", help="test bed of the other tree")
    parser.add_argument("--pairs", type=int, default=5, help="of runs (default: %(default)s)")
    parser.add_argument("--pods", type=int, default=25, help="pods one after the other (default: %(default)s)")
    parser.add_argument("--burst", type=int, default=100, help="pods at once (default: %(default)s)")
    parser.add_argument("--host", default="login", help="submit host (default: %(default)s)")
    parser.add_argument("--user", default="alice", help="who submits (default: %(default)s)")
    figures = measure(parser.parse_args())
    path = save("pod_trees", **figures)
    print(json.dumps(figures["ratios"], indent=1), path, sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
