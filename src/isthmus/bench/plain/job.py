"""The MPIJob of the column mpijob, as a Kubernetes without this project's policies takes it. Pure."""

from __future__ import annotations

from isthmus.bench import scripts
from isthmus.bench.launches import Launch
from isthmus.bench.plan import plain_worker_cpus
from isthmus.bench.scripts import Object, Site

# Open MPI 5 does not know the operator's variables, which are those of release 4: it would run all ranks in the
# launcher, and succeed.
_HOSTS = {
    "PRTE_MCA_prte_default_hostfile": "/etc/mpi/hostfile",
    "PRTE_MCA_prte_keep_fqdn_hostnames": "false",
    "PRTE_MCA_plm_ssh_args": "-o ConnectionAttempts=10",
}
_LAUNCHER_CPUS = "100m"
_LABELS = "training.kubeflow.org"


def mpijob(launch: Launch, site: Site, name: str) -> Object:
    """Return an MPIJob with a worker for each node.

    Args:
        launch: what it runs.
        site: of the plain Kubernetes: its reference of the image, CPUs of its smallest node.
        name: of the object.
    """
    job = scripts.mpijob(launch, site, name)
    replicas = job["spec"]["mpiReplicaSpecs"]
    launcher, worker = (replicas[kind]["template"]["spec"] for kind in ("Launcher", "Worker"))
    _container(launcher)["env"] += [{"name": key, "value": value} for key, value in _HOSTS.items()]
    _container(launcher)["resources"]["requests"]["cpu"] = _LAUNCHER_CPUS
    requests = _container(worker)["resources"]["requests"]
    requests["cpu"] = str(plain_worker_cpus(launch, site.node_cpus))
    # As Slurm's jobs, it may use other CPUs that are idle, but no more memory.
    _container(worker)["resources"]["limits"] = {"memory": requests["memory"]}
    worker["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [_apart(name)]}}
    return job


def _container(pod: Object) -> Object:
    found: Object = pod["containers"][0]
    return found


def _apart(name: str) -> Object:
    labels = {f"{_LABELS}/job-name": name, f"{_LABELS}/job-role": "worker"}
    return {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": labels}}
