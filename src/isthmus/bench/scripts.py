"""What is submitted for a launch: a batch script for Slurm, an object for Kubernetes. Pure.

Each rank is started through `rank` (programs/rank.sh), which prints where and when it begins and ends; so the time and
the hosts of a program are measured alike in all columns.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from isthmus.bench.launches import Column, Launch
from isthmus.bench.plan import worker_cpus

Object = dict[str, Any]

NAMESPACE = "isthmus-bench"
# The folder of the programs in the image.
CONTAINED = "/opt/bench/bin"
_MPIUSER = "/home/mpiuser"
_SSHD = ["/usr/sbin/sshd", "-De", "-f", f"{_MPIUSER}/.sshd_config"]
_LAUNCHER_MIB = 128
_SSHD_MIB = 64
MPIJOB_API = "kubeflow.org/v2beta1"


@dataclass(frozen=True, slots=True)
class Site:
    """The properties of a site that launches need.

    Attributes:
        programs: folder of the programs that were compiled here.
        image: reference of the image with the same programs.
        image_file: the same image as a file of `isthmus pull`.
        settings: environment variables of Open MPI, the same for all columns.
        node_cpus: of the smallest node.
        has_network: whether jobs can have a pod network, so that the others must decline it.
    """

    programs: str
    image: str
    image_file: str
    settings: Mapping[str, str]
    node_cpus: int
    has_network: bool


def command(launch: Launch, site: Site) -> list[str]:
    """Return the command of one rank."""
    folder = CONTAINED if launch.column.is_contained else site.programs
    name, *arguments = launch.program
    words = [f"{folder}/rank", f"{folder}/{name}", *arguments]
    if launch.column in (Column.CONTAINER, Column.CONTAINER_NETWORK):
        return ["apptainer", "--silent", "exec", site.image_file, *words]
    return words


def options(launch: Launch, site: Site, output: str) -> list[str]:
    """Return sbatch's options."""
    network = "private" if launch.column is Column.CONTAINER_NETWORK else "none"
    return [
        "--job-name=isthmus-bench",
        f"--nodes={launch.nodes}",
        f"--ntasks-per-node={launch.per_node}",
        f"--mem-per-cpu={launch.memory_mib}",
        f"--time={launch.minutes}",
        f"--output={output}",
        *([f"--pod-network={network}"] if site.has_network else []),
    ]


def script(launch: Launch, site: Site, ended: str) -> str:
    """Return a batch script; its last act is to create the file `ended`.

    Of several steps each must not wait for Slurm to release the CPUs of the one before: within a pod network srun
    polls, on a node slurmctld notifies it, and the difference would be measured.
    """
    overlap = "--overlap " if launch.steps > 1 else ""
    lines = [
        "#!/bin/bash",
        f"end() {{ touch {shlex.quote(ended)}; }}",
        "trap end EXIT",
        *(f"export {name}={shlex.quote(value)}" for name, value in site.settings.items()),
        f"for step in $(seq {launch.steps}); do",
        '    echo "step begins $(date +%s.%N)"',
        f"    srun --mpi=pmix {overlap}{shlex.join(command(launch, site))} || exit",
        '    echo "step ends $(date +%s.%N)"',
        "done",
    ]
    return "\n".join(lines) + "\n"


def namespace() -> Object:
    """Return the namespace of all objects here."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}


def pod(launch: Launch, site: Site, name: str) -> Object:
    """Return a pod whose container runs as several tasks."""
    container = {
        "name": "main",
        "image": site.image,
        "command": command(launch, site),
        "env": _environment(site),
        "resources": {"requests": {"cpu": "1", "memory": f"{launch.per_node * launch.memory_mib}Mi"}},
    }
    flags = f"--nodes={launch.nodes} --ntasks-per-node={launch.per_node}"
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": NAMESPACE,
            "annotations": {"slurm-job.hpk.io/flags": flags, "slurm-job.hpk.io/mpi-flags": "--mpi=pmix"},
        },
        "spec": {
            "restartPolicy": "Never",
            "activeDeadlineSeconds": launch.minutes * 60,
            "containers": [container],
        },
    }


def mpijob(launch: Launch, site: Site, name: str) -> Object:
    """Return an MPIJob with a worker for each node; so many CPUs a worker that each has a node of its own.

    The launcher starts beside its workers, the operator's default, and its ssh waits for theirs. So no worker needs a
    readiness probe, each try of which would start an sshd beside the ranks.
    """
    exported = [word for variable in site.settings for word in ("-x", variable)]
    mpirun = ["mpirun", "-n", str(launch.ranks), "--bind-to", "none", *exported, *command(launch, site)]
    cpus, memory_mib = worker_cpus(launch, site.node_cpus), launch.per_node * launch.memory_mib + _SSHD_MIB
    launcher = _container(site, "launcher", mpirun, 1, _LAUNCHER_MIB)
    worker = _container(site, "worker", _SSHD, cpus, memory_mib)
    return {
        "apiVersion": MPIJOB_API,
        "kind": "MPIJob",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "slotsPerWorker": launch.per_node,
            "mpiImplementation": "OpenMPI",
            "sshAuthMountPath": f"{_MPIUSER}/.ssh",
            "runPolicy": {
                "cleanPodPolicy": "Running",
                "backoffLimit": 0,
                "activeDeadlineSeconds": launch.minutes * 60,
            },
            "mpiReplicaSpecs": {"Launcher": _replicas(1, launcher), "Worker": _replicas(launch.nodes, worker)},
        },
    }


def _container(site: Site, name: str, words: list[str], cpus: int, memory_mib: int) -> Object:
    return {
        "name": name,
        "image": site.image,
        "command": words,
        "env": _environment(site),
        "securityContext": {"runAsUser": 1000},
        "resources": {"requests": {"cpu": str(cpus), "memory": f"{memory_mib}Mi"}},
    }


def _replicas(count: int, container: Object) -> Object:
    return {"replicas": count, "restartPolicy": "Never", "template": {"spec": {"containers": [container]}}}


def _environment(site: Site) -> list[dict[str, str]]:
    return [{"name": name, "value": value} for name, value in site.settings.items()]
