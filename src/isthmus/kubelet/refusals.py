"""What a pod may not ask for here: each with its reason and its remedy."""

from __future__ import annotations

from collections.abc import Iterable

from isthmus.kubelet import flags
from isthmus.kubelet.placing import place
from isthmus.model.pod_inputs import Object, Settings


def problems(pod: Object, settings: Settings, volumes: Iterable[Object] = ()) -> list[str]:
    """Return why a pod can never run here; empty when it can.

    Args:
        pod: the pod.
        settings: of the cluster.
        volumes: PersistentVolumes of its claims.
    """
    return [*flags.sbatch(pod).problems, *flags.srun(pod).problems, *place(pod, settings, volumes).problems]
