"""What does `srun --container-image` take, against `srun apptainer exec` of the same file?

Both run `true` on two nodes, with the same tasks on each, in rounds of random order within one allocation; so both
pay for one step. The first pulls again in each round (the image is there), which the second is spared.
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

HERE = Path(__file__).parent
IMAGE = "debian"
BASE = "srun"


def commands(image: str, path: str, tasks: int) -> dict[str, str]:
    """Return what is compared: the step alone, in a container a task, in one a node."""
    step = f"srun --nodes=2 --ntasks-per-node={tasks} --mem-per-cpu=100"
    return {
        BASE: f"{step} true",
        "apptainer exec": f"{step} apptainer exec {shlex.quote(path)} true",
        "--container-image": f"{step} --container-image={shlex.quote(image)} true",
    }


def ratios(seconds: dict[str, list[float]]) -> list[float]:
    """Return, for each round, the time of --container-image over that of apptainer exec."""
    return [a / b for a, b in zip(seconds["--container-image"], seconds["apptainer exec"], strict=True)]


def measure(cluster: testbed.TestBed, image: str, path: str, tasks: int, rounds: int) -> dict[str, list[float]]:
    """Return name -> seconds of each round."""
    reported = json.dumps({"rounds": rounds, "commands": commands(image, path, tasks)})
    program = shlex.quote((HERE / "interleaved.py").read_text())
    allocation = f"salloc --quiet --nodes=2 --ntasks-per-node={tasks} --mem-per-cpu=100"
    printed = cluster.run(f"{allocation} /opt/isthmus/bin/python -c {program}", stdin=reported)
    seconds: dict[str, list[float]] = {}
    for line in printed.splitlines():
        each = json.loads(line)
        seconds.setdefault(each["name"], []).append(each["seconds"])
    return seconds


def main() -> int:
    """Measure and write JSON."""
    parser = argparse.ArgumentParser(description="Time steps in containers against apptainer exec in steps.")
    parser.add_argument("--rounds", type=int, default=15, help="of each number of tasks (default: %(default)s)")
    parser.add_argument("--tasks", type=int, nargs="+", default=[1, 2, 4], help="on each node (default: 1 2 4)")
    testbed.add_arguments(parser)
    arguments = parser.parse_args()
    console = Console()
    cluster = testbed.TestBed(arguments.name, arguments.host, arguments.user)
    image = json.loads(cluster.run("cat /etc/isthmus/images.json"))["images"][IMAGE]["reference"]
    path = cluster.run(f"isthmus pull {image}").strip()
    taken = {}
    for tasks in arguments.tasks:
        with console.status(f"{tasks} tasks a node"):
            seconds = measure(cluster, image, path, tasks, arguments.rounds)
        medians = {name: round(statistics.median(values), 3) for name, values in seconds.items()}
        ratio = round(statistics.median(ratios(seconds)), 3)
        console.print(f"{tasks} tasks a node: {medians} s, ratio {ratio}", markup=False)
        taken[str(tasks)] = {"median_s": medians, "ratio": ratio, "seconds": seconds}
    print(save("step_containers", tasks=taken))
    return 0


if __name__ == "__main__":
    sys.exit(main())
