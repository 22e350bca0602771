"""`isthmus status`: the control plane, the node, the pods and their jobs, each as far as it can be known."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import Any

from isthmus.clients.kube.errors import KubeError
from isthmus.clients.slurm.own_jobs import Job
from isthmus.controlplane.commands import user_options
from isthmus.controlplane.commands.context import Context, api, control_planes, jobs, pod_jobs, read_json
from isthmus.controlplane.data import data_report
from isthmus.controlplane.versions import outlook


@dataclass(frozen=True, slots=True)
class Status:
    """What is known; `schema` changes when a field changes its meaning.

    Attributes:
        schema: 1.
        up: whether the API server answers.
        job: of the control plane; None when it is down.
        successor: the job that waits for a place, or for its end.
        server: the API server's URL.
        version: of Kubernetes.
        kubernetes: versions that are there, and what the next start does (outlook.Outlook).
        problem: why the API server does not answer.
        programs: name -> condition, as its own job last reported.
        data: words and warnings about where the data lie (data_report.OnDisk); empty before it reported.
        node: name, ready, capacity.
        pods: phase -> count.
        pod_jobs: jobs of pods.
    """

    schema: int = 1
    up: bool = False
    job: Job | None = None
    successor: Job | None = None
    server: str = ""
    version: str = ""
    kubernetes: dict[str, Any] = field(default_factory=dict)
    problem: str = ""
    programs: dict[str, Any] = field(default_factory=dict)
    data: dict[str, Any] = field(default_factory=dict)
    node: dict[str, Any] = field(default_factory=dict)
    pods: dict[str, int] = field(default_factory=dict)
    pod_jobs: list[Job] = field(default_factory=list)


def status(context: Context) -> Status:
    """Look at the user's cluster.

    Raises:
        UnansweredError: Slurm did not answer.
        ControlPlaneError: a file of the cluster cannot be read.
    """
    known = jobs()
    mine = control_planes(known)
    files = context.home.cluster
    versions = outlook.look(files, context.settings.choices, user_options.read(files))
    document: dict[str, Any] = {"pod_jobs": pod_jobs(context.home, known), "kubernetes": asdict(versions)}
    if mine:
        document |= {"job": mine[0], "successor": mine[1] if len(mine) > 1 else None}
        document["programs"] = dict((read_json(files.programs) or {}).get("programs", {}))
        document |= _api(context, mine[0])
        kept = data_report.read(files, mine[0].id)
        document["data"] = asdict(kept) if kept else {}
    return Status(**document)


def _api(context: Context, job: Job) -> dict[str, Any]:
    state = read_json(context.home.cluster.state)
    if state is None or state.get("job") != job.id:
        return {"problem": f"job {job.id} is {job.state}" + (f" ({job.reason})" if job.state == "PENDING" else "")}
    server = str(state["server"])
    client = api(context.home, server)
    try:
        version = client.get("/version")["gitVersion"]
        pods = client.get("/api/v1/pods")["items"]
        nodes = client.get("/api/v1/nodes")["items"]
    except KubeError as error:
        return {"server": server, "problem": str(error)}
    phases = Counter(pod.get("status", {}).get("phase", "Unknown") for pod in pods)
    return {
        "up": True,
        "server": server,
        "version": version,
        "pods": dict(phases),
        "node": next((_node(node) for node in nodes if node["metadata"]["name"] == context.settings.node), {}),
    }


def _node(node: dict[str, Any]) -> dict[str, Any]:
    conditions = {each["type"]: each["status"] for each in node.get("status", {}).get("conditions", [])}
    return {
        "name": node["metadata"]["name"],
        "ready": conditions.get("Ready") == "True",
        "capacity": node.get("status", {}).get("capacity", {}),
    }
