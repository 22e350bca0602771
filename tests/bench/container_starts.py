"""How long do `apptainer exec IMAGE true` in a job, and a pull with its conversion, take?

The three forms of an image start in turn in one job, beside the same program without a container. The pull is
that of `isthmus pull`, into an empty cache, from the cluster's own registry.
"""

from __future__ import annotations

import argparse
import json
import shlex
import statistics
import sys
import time
from pathlib import Path

from rich.console import Console

from tests.bench import testbed
from tests.bench.results import save

HERE = Path(__file__).parent
FOLDER = "isthmus-bench"
IMAGE = "mpi"


def forms(cluster: testbed.TestBed, reference: str) -> dict[str, str]:
    """Bring the image in each form; return form -> path."""
    squashfs = cluster.run(f"isthmus pull docker://{reference}").strip()
    build = "apptainer --quiet build --force"
    cluster.run(f"mkdir -p {FOLDER} && {build} {FOLDER}/image.sif docker://{reference}")
    cluster.run(f"{build} --sandbox {FOLDER}/sandbox {FOLDER}/image.sif")
    return {"sandbox": f"{FOLDER}/sandbox", "SIF": f"{FOLDER}/image.sif", "squashfs": squashfs}


def starts(cluster: testbed.TestBed, images: dict[str, str], rounds: int) -> dict[str, list[float]]:
    """Return form -> seconds of each start, in one job."""
    cluster.run(f"cat > {FOLDER}/start_rounds.py", stdin=(HERE / "start_rounds.py").read_text())
    words = [f"{name}={path}" for name, path in images.items()]
    job = f"srun --mem=500 /opt/isthmus/bin/python {FOLDER}/start_rounds.py {rounds} {shlex.join(words)}"
    found: dict[str, list[float]] = json.loads(cluster.run(job).splitlines()[-1])
    return found


def pull(cluster: testbed.TestBed, reference: str) -> dict[str, float]:
    """Pull into an empty cache; return the seconds, and the MiB of the outcome."""
    cluster.run("rm -rf .isthmus/images .apptainer/cache")
    begin = time.monotonic()
    path = cluster.run(f"isthmus pull docker://{reference}").strip()
    seconds = time.monotonic() - begin
    size = int(cluster.run(f"stat --format=%s {shlex.quote(path)}"))
    return {"seconds": round(seconds, 2), "file_mib": round(size / 2**20, 1)}


def main() -> int:
    """Measure starts and a pull and write JSON."""
    parser = argparse.ArgumentParser(description="Time container starts in a job and a pull with its conversion.")
    parser.add_argument("--rounds", type=int, default=20, help="starts of each form (default: %(default)s)")
    testbed.add_arguments(parser)
    arguments = parser.parse_args()
    console = Console()
    cluster = testbed.TestBed(arguments.name, arguments.host, arguments.user)
    known = json.loads(cluster.run("cat /etc/isthmus/images.json"))["images"]
    with console.status("pulling and starting"):
        pulled = pull(cluster, known[IMAGE]["reference"])
        taken = starts(cluster, forms(cluster, known[IMAGE]["reference"]), arguments.rounds)
    medians = {name: round(statistics.median(seconds) * 1000, 1) for name, seconds in taken.items()}
    path = save("container_starts", median_ms=medians, seconds=taken, pull=pulled)
    console.print(f"median of {arguments.rounds}, ms: {medians}; pull: {pulled}", markup=False)
    print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
