"""The dependencies of all pod workers: created by main, and by tests with fakes of the clients."""

from __future__ import annotations

from dataclasses import dataclass, field

from isthmus.clients.kube.api import Kube
from isthmus.kubelet.credentials import Authority
from isthmus.kubelet.gangs.loop import Gangs
from isthmus.kubelet.images.manager import Images
from isthmus.kubelet.objects.claims import Claims
from isthmus.kubelet.objects.config import Config
from isthmus.kubelet.objects.services import Services
from isthmus.kubelet.pods.decision.state import Pauses
from isthmus.kubelet.pods.store import Store
from isthmus.kubelet.slurm.jobs import Jobs
from isthmus.kubelet.status.recorder import Recorder
from isthmus.model.pod_inputs import PodSettings


@dataclass(frozen=True, slots=True)
class Address:
    """Address of the channel's server."""

    host: str
    port: int


@dataclass(frozen=True, slots=True)
class Parts:
    """Dependencies of the pod workers."""

    kube: Kube
    store: Store
    jobs: Jobs
    images: Images
    config: Config
    claims: Claims
    recorder: Recorder
    services: Services
    authority: Authority
    address: Address
    gangs: Gangs
    pauses: Pauses = field(default=Pauses())

    @property
    def settings(self) -> PodSettings:
        """Current settings of admission and translation."""
        return self.config.settings
