"""The site's own network on this node: pods as its plugins connect them, refused where two have one address."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from isthmus.clients.cni import admin
from isthmus.clients.cni.admin import Site
from isthmus.clients.cni.attachments import Attachments
from isthmus.clients.cni.lists import AdminList
from isthmus.clients.cni.plugins import CniError
from isthmus.clients.cni.results import Expected
from isthmus.model.network import Attachment, Driver, State
from isthmus.model.node_network import SharedPod
from isthmus.network.drivers.attached import AttachedConverger
from isthmus.network.drivers.attached_network import AttachedNetwork
from isthmus.network.drivers.cni.definition import CniSettings
from isthmus.network.drivers.contract import SharedSettings
from isthmus.network.drivers.node import NodeContext
from isthmus.network.node.attempts import Attempts

_log = logging.getLogger(__name__)


def connect(context: NodeContext, settings: SharedSettings | None) -> AttachedNetwork:
    """Return the network; pods that an earlier daemon made are known at once.

    A list that cannot be used is no reason to leave the other networks alone: jobs that ask for this one hear of it.
    """
    assert isinstance(settings, CniSettings)  # noqa: S101 -- the registry's promise
    network = settings.network
    expected = Expected(network.range, network.bridge, settings.gateway)
    site = Site(AdminList(settings.folder, settings.list, settings.plugins), expected)
    attachments = admin.attachments(site, settings.records)
    collect(attachments)
    store, view = context.store, context.view
    attached = CniConverger(context.node, attachments, lambda each: store.attach(each, view.snapshot))
    return AttachedNetwork(context.node, view, attached, context.converger, context.names)


def collect(attachments: Attachments) -> None:
    """Have plugins give back what a crash left with them alone; those that cannot, or do not, are logged."""
    try:
        attachments.collect()
    except CniError as error:
        _log.warning("nothing is collected, and jobs with network %s may fail: %s", Driver.CNI, error)


class CniConverger(AttachedConverger):
    """Carries out what is wanted of the network on this node."""

    driver = Driver.CNI

    def _refuse(self, pods: Mapping[int, SharedPod], state: State, attempts: Attempts) -> None:
        """Report pods with an address that another pod has: names would lead to both."""
        known: dict[object, list[Attachment]] = {}
        for each in state.attachments.values():
            if each.job in state.jobs and state.jobs[each.job].driver is Driver.CNI:
                known.setdefault(each.address, []).append(each)
        own = Attempts(CniError)
        for job, pod in pods.items():
            others = [each for each in known.get(pod.address, ()) if (each.job, each.node) != (job, self._node)]
            own.make(self._name(job), _refuse_twin, pod, others)
        attempts.errors.update(own.errors)


def _refuse_twin(pod: SharedPod, others: list[Attachment]) -> None:
    if others:
        first = others[0]
        raise CniError(
            f"{pod.address} is also the pod's of job {first.job} on {first.node}; give each node a range of its own in"
            " the list of plugins"
        )
