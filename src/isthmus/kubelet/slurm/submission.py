"""A pod's Slurm job: its sbatch options.

An option of the pod's annotation overrides the one derived from its spec; `admit` has already refused what an
annotation must not contain. Each option is one argument, so no user text is ever parsed by a shell.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from isthmus.kubelet.slurm import annotations as notes
from isthmus.kubelet.slurm import flags
from isthmus.kubelet.slurm.placing import place
from isthmus.kubelet.translate.resources import demand, task_cpus
from isthmus.model.network import Driver
from isthmus.model.pod_inputs import Object, PodSettings
from isthmus.model.pod_job import Job, accounted_as
from isthmus.podproto import folder as names

# Slurm's own, sbatch(1): the largest --nice, and the seconds from SIGTERM to SIGKILL at the end of the time (KillWait).
_NICE_MAX = 2**31 - 3
_KILL_WAIT_S = 30
_SIGNAL_MAX_S = 65535
# Options with the same meaning.
_INSTEAD = {"mem": ("mem-per-cpu", "mem-per-gpu"), "gres": ("gpus", "gpus-per-node", "gpus-per-task")}
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def job(pod: Object, settings: PodSettings, namespace: Object | None = None, volumes: Iterable[Object] = ()) -> Job:
    """Return the job of a pod.

    Args:
        pod: the pod.
        settings: of the cluster.
        namespace: the pod's Namespace, whose annotations may name account and partition.
        volumes: PersistentVolumes of the pod's claims.
    """
    uid = pod["metadata"]["uid"]
    folder = f"{settings.pods}/{uid}"
    asked = flags.sbatch(pod).options
    options: dict[str, str | None] = {
        "job-name": pod["metadata"]["name"],
        "comment": uid,
        "extra": accounted_as(pod["metadata"]["namespace"], pod["metadata"]["name"]),
        "output": f"{folder}/{names.JOB_LOG}".replace("%", "%%"),
        # Exports no variable of the submitting process; the script sets what the supervisor needs.
        "export": "NIL",
        "no-requeue": None,
        "chdir": settings.home,
        **_network(pod, settings),
        **_needs(pod, settings),
        **_owner(pod, settings, namespace),
        **_time(pod),
        **_rank(pod, settings),
        **_placed(pod, settings, volumes),
    }
    replaced = {name for name, others in _INSTEAD.items() if any(other in asked for other in others)}
    kept = {name: value for name, value in options.items() if name not in replaced}
    words = flags.Parsed({**kept, **asked}).words()
    return Job(uid, folder, words, settings.python, (("HOME", settings.home), ("PATH", _PATH)))


def _network(pod: Object, settings: PodSettings) -> dict[str, str | None]:
    if settings.driver == Driver.NONE:
        return {}
    return {"pod-network": Driver.NONE if pod["spec"].get("hostNetwork") else settings.driver}


def _needs(pod: Object, settings: PodSettings) -> dict[str, str | None]:
    needs = demand(pod, settings)
    gres = ",".join(f"{name}:{count}" for name, count in sorted(needs.gres.items()))
    # Containers beside one of several tasks run once and share the job's resources.
    name = flags.mpi_container(pod)
    cpus = needs.cpus if name is None else task_cpus(pod, name, settings)
    found: dict[str, str | None] = {"cpus-per-task": str(cpus), "mem": f"{needs.job_mib}M"}
    return {**found, "gres": gres} if gres else found


def _owner(pod: Object, settings: PodSettings, namespace: Object | None) -> dict[str, str | None]:
    holders = [pod, namespace] if namespace else [pod]
    found: dict[str, str | None] = {}
    for option, annotation, default in (
        ("account", notes.ACCOUNT, settings.account),
        ("partition", notes.PARTITION, settings.partition),
    ):
        said = (notes.value(holder, annotation) for holder in holders)
        if value := next((text for text in said if text), default):
            found[option] = value
    return found


def _time(pod: Object) -> dict[str, str | None]:
    """Round up to Slurm's whole minutes; the kubelet enforces the exact second."""
    spec = pod["spec"]
    found: dict[str, str | None] = {}
    if deadline_s := spec.get("activeDeadlineSeconds"):
        found["time"] = str(math.ceil(deadline_s / 60))
    grace_s = spec.get("terminationGracePeriodSeconds") or 0
    if grace_s > _KILL_WAIT_S:
        found["signal"] = f"B:TERM@{min(grace_s, _SIGNAL_MAX_S)}"
    return found


def _rank(pod: Object, settings: PodSettings) -> dict[str, str | None]:
    spec = pod["spec"]
    if spec.get("priorityClassName") in settings.qos:
        return {"qos": spec["priorityClassName"]}
    # Users cannot raise a job's priority, only lower it by nice.
    priority = spec.get("priority") or 0
    return {"nice": str(min(-priority, _NICE_MAX))} if priority < 0 else {}


def _placed(pod: Object, settings: PodSettings, volumes: Iterable[Object]) -> dict[str, str | None]:
    found = place(pod, settings, volumes)
    options: dict[str, str | None] = {}
    if found.features:
        options["constraint"] = "&".join(f"({one})" if "|" in one else one for one in found.features)
    if found.nodes:
        allowed = frozenset.intersection(*found.nodes)
        # --nodelist would require all of several nodes; any of them is expressed by excluding the others.
        one = len(allowed) == 1
        options["nodelist" if one else "exclude"] = ",".join(sorted(allowed if one else settings.slurm_nodes - allowed))
    return options
