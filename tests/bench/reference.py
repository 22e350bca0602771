"""Pods here beside a plain Kubernetes on the same machine: the official kubelet and containerd, without Slurm.

On request only (`make bench-reference`): it builds two programs more, installs Debian packages in a node of its own,
and the official kubelet writes kernel parameters of the machine, which are put back. Both sides are measured by the
same client from the same host, with the same image, in pairs, each pair in another order; while one is measured the
other is down. What counts are ratios of one pair: both feel what else the machine does.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import random
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

from rich.console import Console

from isthmus.filters.local.podman import local_engine
from tests.bench import testbed
from tests.bench.results import quantile, save
from tests.support.clusters.cluster import BIN, ROOT

CLIENT = Path(__file__).with_name("pod_rounds.py")
SETUP = Path(__file__).with_name("reference_node.sh")
PROGRAMS = Path(__file__).with_name("reference.yml")
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "isthmus"
FOLDER = "isthmus-bench"
# The official kubelet sets these, and has no namespace of its own for them.
PARAMETERS = ("kernel/panic", "kernel/panic_on_oops", "vm/overcommit_memory")
UNITS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet")
# podman mounts the machine's own systemd hierarchy over the one of a private cgroup namespace.
ENTRY = "umount /sys/fs/cgroup/systemd/release_agent; umount /sys/fs/cgroup/systemd; exec /sbin/init"
READY_S = 120
# Smaller is better, but for the burst's rate.
ROWS = ("running_p50", "running_p99", "exit_p50", "exit_p99", "pods_per_s", "cpu_s_a_pod")


def podman(*words: str, stdin: str = "") -> str:
    """Run podman; return what it prints."""
    return subprocess.run(["podman", *words], input=stdin, capture_output=True, text=True, check=True).stdout


@contextmanager
def kept_parameters() -> Iterator[None]:
    """Put the machine's kernel parameters back, whatever happens."""
    files = [Path("/proc/sys") / name for name in PARAMETERS]
    before = [file.read_text() for file in files]
    try:
        yield
    finally:
        for file, text in zip(files, before, strict=True):
            file.write_text(text)


def pause_image(path: Path) -> None:
    """Write an image whose only program does nothing, as each pod of the reference needs one."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["make", "-s", "-C", ROOT / "src/spank", "inside", f"OUT={folder}"], check=True)
        layer, program = io.BytesIO(), Path(folder, "isthmus_hold").read_bytes()
    with tarfile.open(fileobj=layer, mode="w") as files:
        entry = tarfile.TarInfo("pause")
        entry.size, entry.mode = len(program), 0o755
        files.addfile(entry, io.BytesIO(program))
    digest = f"sha256:{sha256(layer.getvalue()).hexdigest()}"
    machine = {"x86_64": "amd64", "aarch64": "arm64"}[os.uname().machine]
    root = {"type": "layers", "diff_ids": [digest]}
    config = json.dumps({"architecture": machine, "os": "linux", "config": {"Entrypoint": ["/pause"]}, "rootfs": root})
    manifest = [{"Config": "config.json", "RepoTags": ["localhost/pause:1"], "Layers": ["layer.tar"]}]
    parts = {
        "config.json": config.encode(),
        "layer.tar": layer.getvalue(),
        "manifest.json": json.dumps(manifest).encode(),
    }
    with tarfile.open(path, "w") as archive:
        for name, content in parts.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))


def programs(folder: Path) -> dict[str, str]:
    """Obtain the programs; return where each lies."""
    reported = folder / "programs.json"
    command = [BIN / "ansible-playbook", PROGRAMS, "--extra-vars", f"reference_programs_file={reported}"]
    subprocess.run([*map(str, command)], cwd=ROOT, check=True)
    found: dict[str, str] = json.loads(reported.read_text())
    return found


class Reference:
    """A plain Kubernetes in one container beside a test bed.

    Args:
        bed: name of the test bed, whose image and network it has.
        folder: of this run.
    """

    def __init__(self, bed: str, folder: Path) -> None:
        self._bed, self._folder, self._name = bed, folder, f"{bed}-reference"

    def make(self, image: str, archive: Path) -> None:
        """Make it, stopped."""
        like = json.loads(podman("inspect", f"{self._bed}-login"))[0]["ImageName"]
        status, limits = (Path(f"/proc/self/{kind}").read_text() for kind in ("status", "limits"))
        engine = local_engine(json.loads(podman("info", "--format", "json")), status, limits)
        self.remove()
        # Its own files would be an overlay on an overlay.
        volumes = [f"{self._name}-{name}:/var/lib/{name}" for name in ("containerd", "kubelet")]
        shape = ["--privileged", "--systemd=always", "--cgroupns=private", "--pids-limit=-1", "--shm-size=1g", *engine]
        where = ["--name", self._name, "--hostname", "reference", "--network", self._bed]
        mounts = [word for volume in volumes for word in ("--volume", volume)]
        podman("run", "--detach", *where, *shape, *mounts, like, "sh", "-c", ENTRY)
        podman("exec", self._name, "mkdir", "-p", "/reference/bin")
        pause_image(self._folder / "pause.tar")
        found = programs(self._folder)
        for source, target in {
            **{path: f"bin/{name}" for name, path in found.items()},
            str(self._folder / "pause.tar"): "pause.tar",
            str(archive): "image.tar",
        }.items():
            podman("cp", source, f"{self._name}:/reference/{target}")
        podman("exec", "--interactive", self._name, "bash", "-s", image, stdin=SETUP.read_text())

    def start(self) -> None:
        """Start it; return when its node is ready."""
        podman("exec", self._name, "systemctl", "start", *UNITS)
        look = "kubectl --kubeconfig=/etc/kubernetes/admin.kubeconfig wait --for=condition=Ready node/reference"
        self._until(f"{look} --timeout=5s")
        self._until("kubectl --kubeconfig=/etc/kubernetes/admin.kubeconfig get serviceaccount default")

    def stop(self) -> None:
        """Stop all of it."""
        podman("exec", self._name, "systemctl", "stop", *reversed(UNITS))

    def kubeconfig(self) -> str:
        """Return an administrator's."""
        return podman("exec", self._name, "cat", "/etc/kubernetes/admin.kubeconfig")

    def remove(self) -> None:
        """Remove it with all it had; what is not there is fine."""
        podman("rm", "--force", "--ignore", "--time", "5", "--volumes", self._name)
        podman("volume", "rm", "--force", f"{self._name}-containerd", f"{self._name}-kubelet")

    def _until(self, command: str) -> None:
        deadline = time.monotonic() + READY_S
        while subprocess.run(["podman", "exec", self._name, "sh", "-c", command], capture_output=True).returncode:
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
    archive = CACHE / "images-oci" / f"{image.rpartition('/')[2].replace(':', '-')}.tar"
    reference, configs = Reference(arguments.name, folder), {"isthmus": "", "reference": f"{FOLDER}/reference.conf"}
    pairs = []
    try:
        reference.make(image, archive)
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
