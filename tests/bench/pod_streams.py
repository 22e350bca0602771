"""How soon does exec answer and a line of a log come, how fast is a forwarded port, and what does an idle kubelet take?

A forwarded port is compared with the pod's own address, which the login node reaches, in the same run. A delay of a log
is that from a container on a compute node to the login node, on the clock that the nodes of a local test bed share.
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from pathlib import Path
from typing import Any

from rich.console import Console

from tests.bench import rounds, testbed
from tests.bench.results import quantile, save

HERE = Path(__file__).parent
SCRIPTS = ("pod_rounds.py", "pod_stream_rounds.py")
FOLDER = "isthmus-bench"
IMAGE = "busybox"


def taken(cluster: testbed.TestBed, asked: dict[str, Any]) -> dict[str, Any]:
    """Run the rounds in a Kubernetes that is up from nothing and goes down again; return what they found."""
    console = Console()
    cluster.run(f"mkdir -p {FOLDER}")
    for name in SCRIPTS:
        cluster.run(f"cat > {FOLDER}/{name}", stdin=(HERE / name).read_text())
    with console.status("isthmus up"):
        cluster.run("isthmus down && isthmus up")
    try:
        with console.status(f"idle, {asked['pods']} pods, streams"):
            run = shlex.quote(f"/opt/isthmus/bin/python {FOLDER}/{SCRIPTS[-1]}")
            reported = cluster.run(f"bash --login -c {run}", stdin=json.dumps(asked))
    finally:
        cluster.run("isthmus down")
    found: dict[str, Any] = json.loads(reported.splitlines()[-1])
    return found


def summed(found: dict[str, Any]) -> dict[str, Any]:
    """Return the figures that the rounds come to."""
    delays = {
        name: {f"p{share:.0%}".rstrip("%"): round(quantile(found[name], share), 3) for share in (0.5, 0.95)}
        for name in ("exec_s", "log_s")
    }
    return {**delays, "gbit_per_s": rounds.compare(found["transfers"], "direct"), "idle": found["idle"]}


def main() -> int:
    """Measure and write JSON."""
    parser = argparse.ArgumentParser(description="Time exec, logs and forwarded ports, and weigh an idle kubelet.")
    parser.add_argument("--execs", type=int, default=200, help="execs one after the other (default: %(default)s)")
    parser.add_argument("--lines", type=int, default=200, help="lines of a followed log (default: %(default)s)")
    parser.add_argument("--transfers", type=int, default=10, help="of each way (default: %(default)s)")
    parser.add_argument("--transfer-mib", type=int, default=256, help="size of each (default: %(default)s)")
    parser.add_argument("--pods", type=int, default=20, help="beside an idle kubelet (default: %(default)s)")
    parser.add_argument("--window-s", type=float, default=120, help="of idleness (default: %(default)s)")
    parser.add_argument("--quick", action="store_true", help="few of each, to see that it works")
    testbed.add_arguments(parser)
    arguments = parser.parse_args()
    names = ("execs", "lines", "transfers", "transfer_mib", "pods", "window_s")
    asked = {name: getattr(arguments, name) for name in names}
    if arguments.quick:
        asked = dict(zip(names, (3, 10, 2, 16, 2, 5), strict=True))
    cluster = testbed.TestBed(arguments.name, arguments.host, arguments.user)
    image = json.loads(cluster.run("cat /etc/isthmus/images.json"))["images"][IMAGE]["reference"]
    found = taken(cluster, {**asked, "image": image})
    figures = summed(found)
    print(*(f"{name}: {figure}" for name, figure in figures.items()), sep="\n")
    print(save("pod_streams", quick=arguments.quick, asked=asked, summary=figures, **found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
