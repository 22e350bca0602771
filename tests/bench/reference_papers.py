"""The papers' tables with a column of a plain Kubernetes: makes one beside a test bed, measures, removes it.

On request only (`make bench-papers-plain`). A control plane and as many workers as the test bed has compute nodes, all
of them containers of its image; pods of different workers reach one another over VXLAN, as jobs of the test bed do. The
user who measures may log in to the control plane, to start and stop all of it: `isthmus bench` gives turns by that.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import yaml

from tests.bench import testbed
from tests.bench.reference_nodes import Node, archive, image_files, kept_parameters, pause_image, programs
from tests.support.clusters.cluster import BIN, ROOT

TURNS = Path(__file__).with_name("reference_turns.sh")
# In the home of the user who measures.
FOLDER = "isthmus-bench/plain"
IMAGE = "bench-openmpi"
# Of the manifest; its Deployment would be a pod, which outlives a stop of the kubelet.
OPERATORS_OWN = ("Deployment",)
SSH = "-o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR"


class PlainKubernetes:
    """A control plane and workers beside a test bed.

    Args:
        bed: name of the test bed.
        workers: how many.
        folder: of this run.
    """

    def __init__(self, bed: str, workers: int, folder: Path) -> None:
        self._folder = folder
        self._control = Node(bed, f"{bed}-reference", "reference")
        self._workers = [Node(bed, f"{bed}-reference-{number}", f"plain-{number}") for number in range(1, workers + 1)]

    def make(self, image: str) -> None:
        """Make it, stopped.

        Args:
            image: reference of the image of the benchmarks.
        """
        found = programs(self._folder)
        pause = pause_image(self._folder / "pause.tar")
        images = image_files({"localhost/pause:1": pause, image: archive(image)}, self._folder)
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(self._folder / "key")], check=True)
        self._control.make({"key": str(self._folder / "key"), **_binaries(found)})
        self._control.run("sysctl kernel.panic kernel.panic_on_oops vm.overcommit_memory >/reference/sysctl.conf")
        for worker in self._workers:
            worker.make(_binaries({name: found[name] for name in ("kubectl", "kubelet")}) | images)
        for node in (self._control, *self._workers):
            self._let_in(node)
        self._set_up(found["mpi-operator.yaml"])

    def _set_up(self, manifest: str) -> None:
        addresses = {worker.host: worker.address for worker in self._workers}
        self._control.set_up("control", *(f"{host}={address}" for host, address in addresses.items()))
        self._control.run("cat >/reference/workers", "".join(f"{address}\n" for address in addresses.values()))
        self._control.run("cat >/usr/local/bin/reference && chmod 755 /usr/local/bin/reference", TURNS.read_text())
        subnets = {address: f"10.245.{number}.0/24" for number, address in enumerate(addresses.values(), 1)}
        for worker in self._workers:
            own = addresses[worker.host]
            credentials = self._control.run(f"tar --create --directory /reference/{worker.host} . | base64")
            worker.run("base64 --decode | tar --extract --directory /reference/credentials", credentials)
            peers = [f"{address}={subnet}" for address, subnet in subnets.items() if address != own]
            worker.set_up("worker", self._control.address, subnets[own], *peers)
        self._control.run("reference start")
        objects = [each for each in yaml.safe_load_all(Path(manifest).read_text()) if each["kind"] not in OPERATORS_OWN]
        kubectl = "kubectl --kubeconfig=/etc/kubernetes/admin.kubeconfig"
        self._control.run(f"{kubectl} apply --server-side --filename=-", yaml.safe_dump_all(objects))
        self._control.run("reference stop")

    def _let_in(self, node: Node) -> None:
        node.run("mkdir -p /root/.ssh && cat >/root/.ssh/authorized_keys", (self._folder / "key.pub").read_text())
        # It has failed while there was no key, some times in a row.
        node.run("systemctl is-system-running --wait >/dev/null; ssh-keygen -A >/dev/null; systemctl reset-failed ssh")
        node.run("systemctl restart ssh")

    def offer(self, cluster: testbed.TestBed) -> dict[str, str]:
        """Give the user who measures a kubeconfig and two commands; return the options of the bench."""
        login = f"ssh -i {FOLDER}/key {SSH} root@{self._control.address}"
        # Slurm's jobs need no Kubernetes; the user's own one must be down meanwhile, too.
        commands = {
            "start": f"#!/bin/bash -l\nset -e\ncd\nisthmus down >/dev/null\n{login} reference start\n",
            "stop": f"#!/bin/bash -l\nset -e\ncd\n{login} reference stop\nisthmus up >/dev/null\n",
        }
        cluster.run(f"umask 077 && mkdir -p {FOLDER} && cat >{FOLDER}/key", (self._folder / "key").read_text())
        config = self._control.run("cat /etc/kubernetes/admin.kubeconfig")
        cluster.run(f"umask 077 && cat >{FOLDER}/kubeconfig", config)
        for name, text in commands.items():
            cluster.run(f"cat >{FOLDER}/{name} && chmod 700 {FOLDER}/{name}", text)
        home = cluster.run("pwd").strip()
        return {"kubernetes": f"{home}/{FOLDER}/kubeconfig", **{name: f"{home}/{FOLDER}/{name}" for name in commands}}

    def remove(self) -> None:
        """Remove it with all it had."""
        for node in (self._control, *self._workers):
            node.remove()


def _binaries(found: dict[str, str]) -> dict[str, str]:
    return {f"bin/{name}": path for name, path in found.items() if not name.endswith(".yaml")}


def main() -> int:
    """Make it, run the playbook, remove it."""
    parser = argparse.ArgumentParser(
        description="Measure the papers' tables beside a plain Kubernetes on this machine.",
        epilog="What follows `--` is for ansible-playbook, such as -e bench_size=smoke.",
    )
    parser.add_argument("--inventory", default="inventories/bench", help="of the test bed (default: %(default)s)")
    parser.add_argument("--workers", type=int, default=4, help="of the plain Kubernetes (default: %(default)s)")
    parser.add_argument("rest", nargs="*", help=argparse.SUPPRESS)
    testbed.add_arguments(parser)
    arguments = parser.parse_args()
    cluster = testbed.TestBed(arguments.name, arguments.host, arguments.user)
    playbook = [str(BIN / "ansible-playbook"), "-i", arguments.inventory]
    # Its images, which the plain Kubernetes has too.
    subprocess.run([*playbook, "playbooks/bench.yml"], cwd=ROOT, check=True)
    image = json.loads(cluster.run("cat /etc/isthmus/bench.json"))["images"][IMAGE]
    with kept_parameters(), tempfile.TemporaryDirectory() as folder:
        plain = PlainKubernetes(arguments.name, arguments.workers, Path(folder))
        try:
            plain.make(image)
            options = json.dumps({"bench_plain": plain.offer(cluster)})
            command = [*playbook, "playbooks/benchmark.yml", "-e", options, *arguments.rest]
            return subprocess.run(command, cwd=ROOT, check=False).returncode
        finally:
            cluster.run(f"rm -rf {FOLDER}")
            plain.remove()


if __name__ == "__main__":
    sys.exit(main())
