"""From a pod to what its supervisor runs, and to the Slurm job it runs in.

    wanted(pod) -> the loops ask for it -> Resolved -> plan(pod, resolved), and job(pod, settings) -> sbatch

Pure: the same pod gives the same plan and job, so that after a crash nothing is decided twice in two ways. Refuse a
pod before (`refusals.problems`): here its text counts as right. What is missing is an UnreadyError: the pod waits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from isthmus.kubelet.slurm.submission import job
from isthmus.kubelet.translate import names
from isthmus.kubelet.translate.containers import container
from isthmus.kubelet.translate.resources import demand
from isthmus.kubelet.translate.volumes import changing, claim_of, tokens, volumes
from isthmus.model.pod_inputs import Object, Resolved, Wanted
from isthmus.podproto.plan import Container, Plan, Volume

__all__ = ["job", "plan", "single", "target", "update", "wanted"]

GRACE_S = 30
_KINDS = ("initContainers", "containers", "ephemeralContainers")


def wanted(pod: Object) -> Wanted:
    """Return what a pod names; ask for it before the plan."""
    spec = pod["spec"]
    containers = [one for kind in _KINDS for one in spec.get(kind) or ()]
    claims = (claim_of(pod, volume) for volume in spec.get("volumes") or ())
    return Wanted(
        images=frozenset([*(one["image"] for one in containers if one.get("image")), *_volume_images(spec)]),
        config_maps=frozenset(_references(spec, containers, "configMap")),
        secrets=frozenset(_references(spec, containers, "secret")),
        claims=frozenset(claim for claim in claims if claim),
        tokens=frozenset(tokens(pod)),
    )


def plan(pod: Object, resolved: Resolved) -> Plan:
    """Return what the supervisor of a pod runs.

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
        volumes=volumes(pod, needs, resolved),
        init=tuple(container(pod, one, needs, resolved, hostname) for one in spec.get("initContainers") or ()),
        containers=tuple(container(pod, one, needs, resolved, hostname) for one in spec["containers"]),
    )


def update(pod: Object, resolved: Resolved) -> tuple[Volume, ...]:
    """Return a running pod's volumes of files anew, after a ConfigMap, Secret, token, label or annotation changed.

    Raises:
        UnreadyError: what they hold is gone; the pod keeps what it has.
    """
    return changing(pod, demand(pod, resolved.settings), resolved)


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


def _references(spec: Object, containers: Iterable[Object], kind: str) -> Iterator[str]:
    """Give the names of all ConfigMaps, or all Secrets, of variables and volumes."""
    for one in containers:
        for source in one.get("envFrom") or ():
            yield from _name(source.get(f"{kind}Ref"))
        for entry in one.get("env") or ():
            yield from _name((entry.get("valueFrom") or {}).get(f"{kind}KeyRef"))
    for volume in spec.get("volumes") or ():
        yield from _name(volume.get(kind))
        for source in (volume.get("projected") or {}).get("sources") or ():
            yield from _name(source.get(kind))


def _volume_images(spec: Object) -> Iterator[str]:
    for volume in spec.get("volumes") or ():
        if reference := (volume.get("image") or {}).get("reference"):
            yield str(reference)


def _name(reference: Object | None) -> Iterator[str]:
    name = (reference or {}).get("secretName") or (reference or {}).get("name")
    if name:
        yield str(name)
