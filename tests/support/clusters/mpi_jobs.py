"""MPIJobs as users write them, and what became of them."""

from __future__ import annotations

import copy
import json
import re
from collections import Counter
from dataclasses import dataclass
from typing import Any

import yaml

from tests.support.clusters.user_clusters import POD_S, Space
from tests.support.wait import wait

RANK = re.compile(r"Rank (\d+) on host (\S+)")
Object = dict[str, Any]


@dataclass(frozen=True)
class MpiJobs:
    """Those of a namespace.

    Attributes:
        space: the namespace.
        examples: MPI -> the site's example of it.
        images: name -> reference, of the workload.
    """

    space: Space
    examples: dict[str, Object]
    images: dict[str, str]

    def make(self, name: str, mpi: str = "openmpi", **changes: Any) -> Object:
        """Make a job like an example; return what was made.

        Args:
            name: of the job.
            mpi: whose example.
            changes: `spec` and `policy` (fields of spec and of its runPolicy), `launcher` and `worker` (fields of these
                containers), `workers` (how many).
        """
        job = copy.deepcopy(self.examples[mpi])
        spec, replicas = job["spec"], job["spec"]["mpiReplicaSpecs"]
        job["metadata"]["name"] = name
        spec.update(changes.get("spec", {}))
        replicas["Worker"]["replicas"] = changes.get("workers", 2)
        spec["runPolicy"].update(changes.get("policy", {}))
        for kind in ("Launcher", "Worker"):
            (container,) = replicas[kind]["template"]["spec"]["containers"]
            container.update(changes.get(kind.lower(), {}))
            replicas[kind]["template"]["spec"]["containers"] = [
                {key: value for key, value in container.items() if value is not None}
            ]
        self.space.kubectl("apply -f -", json.dumps(job))
        return job

    def get(self, name: str) -> Object:
        """Return a job."""
        return self.space.get(f"mpijob/{name}")

    def condition(self, name: str, kind: str) -> Object:
        """Return a condition of a job; empty before it has it."""
        reported = self.get(name).get("status", {}).get("conditions") or []
        return next((each for each in reported if each["type"] == kind and each["status"] == "True"), {})

    def ended(self, name: str, kind: str = "Succeeded", timeout_s: float = POD_S) -> Object:
        """Return the condition that a job ends with."""
        other = "Failed" if kind == "Succeeded" else "Succeeded"
        return wait(
            lambda: self.condition(name, kind),
            error=lambda _: bool(self.condition(name, other)),
            timeout_s=timeout_s,
            interval_s=1,
        )

    def log(self, name: str) -> str:
        """Return what the launcher wrote."""
        return self.space.kubectl(f"logs job/{name}-launcher")

    def hosts(self, name: str) -> Counter[str]:
        """Return on which hosts ranks ran, and how many on each."""
        return Counter(host for _, host in RANK.findall(self.log(name)))

    def pods(self, name: str) -> list[str]:
        """Return the names of a job's pods that are there."""
        listed = self.space.get(f"pods --selector training.kubeflow.org/job-name={name}")["items"]
        return sorted(pod["metadata"]["name"] for pod in listed)

    def workers(self, name: str) -> list[str]:
        """Return those of its workers."""
        return [pod for pod in self.pods(name) if pod.startswith(f"{name}-worker-")]

    def remove(self, *names: str) -> None:
        """Delete jobs, with all they made."""
        self.space.kubectl(f"delete --ignore-not-found --timeout=120s mpijob {' '.join(names)}")


def examples(workload: Object, read: Any) -> dict[str, Object]:
    """Return MPI -> example.

    Args:
        workload: as `isthmus workloads status --json` has it.
        read: path -> text.
    """
    reported = [yaml.safe_load(read(path)) for path in workload["examples"]]
    return {each["metadata"]["name"].removeprefix("pi-"): each for each in reported}
