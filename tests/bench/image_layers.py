"""How long until an image runs whose base is kept from another one, and what does it cost?

In each round the cluster's largest image is pulled into an empty cache, then one that has a layer of 1 MiB on top of
it; both start once. Both come from the user's own folder, so that the registry's time is in neither.
"""

from __future__ import annotations

import argparse
import json
import shlex
import statistics
import sys
from pathlib import Path

from rich.console import Console

from tests.bench import testbed
from tests.bench.results import save

PROGRAM = Path(__file__).with_name("layer_rounds.py")
FOLDER = "isthmus-bench"
IMAGE = "mpi"
# Until the image has started, for one of 110 MB whose base is kept.
GOAL_S = 1.5


def main() -> int:
    """Measure and write JSON; 1 where the goal is missed."""
    parser = argparse.ArgumentParser(description="Time pulls of images on a known base.")
    parser.add_argument("--rounds", type=int, default=5, help="pulls of each kind (default: %(default)s)")
    testbed.add_arguments(parser)
    arguments = parser.parse_args()
    console = Console()
    cluster = testbed.TestBed(arguments.name, arguments.host, arguments.user)
    reference = json.loads(cluster.run("cat /etc/isthmus/images.json"))["images"][IMAGE]["reference"]
    cluster.run(f"mkdir -p {FOLDER} && cat > {FOLDER}/layer_rounds.py", stdin=PROGRAM.read_text())
    with console.status("pulling and starting"):
        words = f"python3 {FOLDER}/layer_rounds.py {arguments.rounds} {shlex.quote(reference)}"
        rounds: dict[str, list[dict[str, float]]] = json.loads(cluster.run(words).splitlines()[-1])
    medians = {
        kind: {key: round(statistics.median(one[key] for one in each), 3) for key in each[0]}
        for kind, each in rounds.items()
    }
    path = save("image_layers", median=medians, rounds=rounds, goal_s=GOAL_S)
    for kind, figures in medians.items():
        console.print(f"{kind}: {figures}", markup=False)
    print(path)
    known = medians["base is kept"]
    return int(known["pull_s"] + known["start_s"] > GOAL_S)


if __name__ == "__main__":
    sys.exit(main())
