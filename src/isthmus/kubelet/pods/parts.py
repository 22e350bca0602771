"""What all workers share; main puts it together, tests put fakes of the clients in it."""

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
from isthmus.model.pod_inputs import Settings


@dataclass(frozen=True, slots=True)
class Address:
    """Where supervisors find the channel."""

    host: str
    port: int


@dataclass(frozen=True, slots=True)
class Parts:
    """The kubelet without its pods."""

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
    def settings(self) -> Settings:
        """Settings of the decisions, as they are now."""
        return self.config.settings
