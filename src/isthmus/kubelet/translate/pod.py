"""Translates a pod into its supervisor's plan and its Slurm job.

    wanted(pod) -> resolved by `objects.config` -> plan(pod, resolved), and job(pod, settings) -> sbatch

Pure: the same pod gives the same plan and job, before and after a crash. The pod must have passed
admission (`admit.pod.problems`). A missing reference is an UnreadyError: the pod waits.
"""

from __future__ import annotations

from isthmus.kubelet.slurm.submission import job
from isthmus.kubelet.translate import names
from isthmus.kubelet.translate.containers import container
from isthmus.kubelet.translate.environment import references
from isthmus.kubelet.translate.resources import demand
from isthmus.kubelet.volumes import registry as volumes
from isthmus.model.pod_inputs import Object, Resolved, Wanted
from isthmus.podproto.plan import Container, Plan, Volume

__all__ = ["job", "plan", "single", "target", "update", "wanted"]

GRACE_S = 30
_KINDS = ("initContainers", "containers", "ephemeralContainers")


def wanted(pod: Object) -> Wanted:
    """Return a pod's references, which must be resolved before `plan`."""
    containers = [one for kind in _KINDS for one in pod["spec"].get(kind) or ()]
    own = Wanted(
        images=frozenset(one["image"] for one in containers if one.get("image")),
        config_maps=frozenset(references(containers, "configMap")),
        secrets=frozenset(references(containers, "secret")),
    )
    return own + volumes.wanted(pod)


def plan(pod: Object, resolved: Resolved) -> Plan:
    """Return the plan for a pod's supervisor.

    Raises:
        UnreadyError: something the pod names, and not as optional, is missing.
    """
    spec, meta, settings = pod["spec"], pod["metadata"], resolved.settings
    needs = demand(pod, settings)
    hostname = names.hostname(pod, settings)
    grace_s = spec.get("terminationGracePeriodSeconds")
    return Plan(
        uid=meta["uid"],
        namespace=meta.get("namespace") or "default",
        name=meta["name"],
        hostname=hostname,
        fqdn=names.fqdn(pod, settings),
        host_network=bool(spec.get("hostNetwork")),
        share_pid=bool(spec.get("shareProcessNamespace")),
        restart_policy=spec.get("restartPolicy") or "Always",
        grace_s=GRACE_S if grace_s is None else grace_s,
        dns=names.dns(pod, settings),
        hosts=names.hosts(pod),
        volumes=volumes.plan(pod, needs, resolved),
        init=tuple(container(pod, one, needs, resolved, hostname) for one in spec.get("initContainers") or ()),
        containers=tuple(container(pod, one, needs, resolved, hostname) for one in spec["containers"]),
    )


def update(pod: Object, resolved: Resolved) -> tuple[Volume, ...]:
    """Return a running pod's volumes of files after a ConfigMap, Secret, token, label or annotation changed.

    Raises:
        UnreadyError: what they hold is gone; the pod keeps what it has.
    """
    return volumes.plan(pod, demand(pod, resolved.settings), resolved, changing=True)


def single(pod: Object, name: str, resolved: Resolved) -> Container:
    """Return one container of a running pod, of any kind.

    Raises:
        UnreadyError: something it names is missing.
        KeyError: the pod has none of this name.
    """
    found = {one["name"]: one for kind in _KINDS for one in pod["spec"].get(kind) or ()}[name]
    hostname = names.hostname(pod, resolved.settings)
    return container(pod, found, demand(pod, resolved.settings), resolved, hostname)


def target(pod: Object, name: str) -> str:
    """Return the container whose processes an ephemeral container sees; empty for its own alone."""
    found = (one for one in pod["spec"].get("ephemeralContainers") or () if one["name"] == name)
    return next((str(one.get("targetContainerName") or "") for one in found), "")
