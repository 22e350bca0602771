"""Pods here beside a plain Kubernetes on the same machine: the official kubelet and containerd, without Slurm.

On request only (`make bench-reference`): it builds two programs more, installs Debian packages in a node of its own,
and the official kubelet writes kernel parameters of the machine, which are put back. Both sides are measured by the
same client from the same host, with the same image, in pairs, each pair in another order; while one is measured the
other is down. What counts are ratios of one pair: both feel what else the machine does.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from rich.console import Console

from tests.bench import testbed
from tests.bench.reference_nodes import Node, archive, image_files, kept_parameters, pause_image, programs
from tests.bench.results import quantile, save

CLIENT = Path(__file__).with_name("pod_rounds.py")
FOLDER = "isthmus-bench"
UNITS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet")
READY_S = 120
# Smaller is better, but for the burst's rate.
ROWS = ("running_p50", "running_p99", "exit_p50", "exit_p99", "pods_per_s", "cpu_s_a_pod")


class Reference:
    """A plain Kubernetes in one container beside a test bed.

    Args:
        bed: name of the test bed, whose image and network it has.
        folder: of this run.
    """

    def __init__(self, bed: str, folder: Path) -> None:
        self._folder, self._node = folder, Node(bed, f"{bed}-reference", "reference")

    def make(self, image: str) -> None:
        """Make it, stopped."""
        found = programs(self._folder)
        pause = pause_image(self._folder / "pause.tar")
        images = image_files({"localhost/pause:1": pause, image: archive(image)}, self._folder)
        self._node.make({**{f"bin/{name}": path for name, path in found.items()}, **images})
        address = self._node.address
        self._node.set_up("control", f"{self._node.host}={address}")
        self._node.run(f"cp /reference/{self._node.host}/* /reference/credentials/")
        self._node.set_up("worker", address, "10.245.0.0/22")

    def start(self) -> None:
        """Start it; return when its node is ready."""
        self._node.run(f"systemctl start {' '.join(UNITS)}")
        look = "kubectl --kubeconfig=/etc/kubernetes/admin.kubeconfig wait --for=condition=Ready node/reference"
        self._until(f"{look} --timeout=5s")
        self._until("kubectl --kubeconfig=/etc/kubernetes/admin.kubeconfig get serviceaccount default")

    def stop(self) -> None:
        """Stop all of it."""
        self._node.run(f"systemctl stop {' '.join(reversed(UNITS))}")

    def kubeconfig(self) -> str:
        """Return an administrator's."""
        return self._node.run("cat /etc/kubernetes/admin.kubeconfig")

    def remove(self) -> None:
        """Remove it with all it had; what is not there is fine."""
        self._node.remove()

    def _until(self, command: str) -> None:
        deadline = time.monotonic() + READY_S
        while subprocess.run(["podman", "exec", self._node.name, "sh", "-c", command], capture_output=True).returncode:
            if time.monotonic() > deadline:
                raise SystemExit(f"the reference is not ready: {command}; see its units' journal")
            time.sleep(1)


def run_client(cluster: testbed.TestBed, image: str, config: str, count: int, many: int) -> dict[str, float]:
    """Run the client; return what the rows show."""
    reported = cluster.run(f"/opt/isthmus/bin/python {FOLDER}/pod_rounds.py {image} {count} {many} {config}")
    taken = json.loads(reported.splitlines()[-1])
    if taken["burst"]["succeeded"] != many:
        raise SystemExit(f"{taken['burst']['succeeded']} of {many} pods succeeded")
    singles, burst = taken["singles"], taken["burst"]
    quantiles = {
        f"{kind}_p{share * 100:.0f}": quantile(singles[f"{kind}_s"], share)
        for kind in ("running", "exit")
        for share in (0.5, 0.99)
    }
    return {**quantiles, "pods_per_s": many / burst["seconds"], "cpu_s_a_pod": burst["cpu_s"] / many}


def ratios(pairs: list[dict[str, dict[str, float]]], over: str, under: str) -> dict[str, dict[str, float]]:
    """Return of each row the median of the pairs' ratios, and the least and the most."""
    found = {row: sorted(pair[over][row] / pair[under][row] for pair in pairs) for row in ROWS}
    return {row: {"median": statistics.median(each), "least": each[0], "most": each[-1]} for row, each in found.items()}


def measure(arguments: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Make the reference, measure pairs, remove it."""
    console, cluster = Console(), testbed.TestBed(arguments.name, arguments.host, arguments.user)
    image = json.loads(cluster.run("cat /etc/isthmus/images.json"))["images"]["busybox"]["reference"]
    reference, configs = Reference(arguments.name, folder), {"isthmus": "", "reference": f"{FOLDER}/reference.conf"}
    pairs = []
    try:
        reference.make(image)
        cluster.run(f"mkdir -p {FOLDER} && cat > {FOLDER}/pod_rounds.py", stdin=CLIENT.read_text())
        cluster.run(f"umask 077; cat > {configs['reference']}", stdin=reference.kubeconfig())
        starts = {"isthmus": lambda: cluster.run("isthmus up --json"), "reference": reference.start}
        stops = {"isthmus": lambda: cluster.run("isthmus down"), "reference": reference.stop}
        for number in range(arguments.pairs):
            pair: dict[str, dict[str, float]] = {}
            for side in random.sample(sorted(starts), 2):
                starts[side]()
                try:
                    pair[side] = run_client(cluster, image, configs[side], arguments.pods, arguments.burst)
                finally:
                    stops[side]()
            console.print(f"pair {number + 1}", pair)
            pairs.append(pair)
    finally:
        reference.remove()
        cluster.run(f"rm -f {configs['reference']}")
    return {"pairs": pairs, "ratios": ratios(pairs, "isthmus", "reference")}


def main() -> int:
    """Measure and write JSON."""
    parser = argparse.ArgumentParser(description="Compare pods with those of a plain Kubernetes on this machine.")
    parser.add_argument("--pairs", type=int, default=5, help="of runs (default: %(default)s)")
    parser.add_argument("--pods", type=int, default=30, help="pods one after the other (default: %(default)s)")
    parser.add_argument("--burst", type=int, default=100, help="pods at once (default: %(default)s)")
    testbed.add_arguments(parser)
    arguments = parser.parse_args()
    with kept_parameters(), tempfile.TemporaryDirectory() as folder:
        figures = measure(arguments, Path(folder))
    path = save("reference", **figures)
    print(json.dumps(figures["ratios"], indent=1), path, sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
