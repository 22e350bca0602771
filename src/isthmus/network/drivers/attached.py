"""Reconciles this node's pods that CNI plugins connect with etcd's state, and publishes their addresses.

A pass looks at what there is, takes away what is not wanted, connects what is missing or half made, and writes to etcd
the address of each pod that etcd does not know. It has a lock of its own: plugins take tens of milliseconds, and
private networks do not wait for them. A job is wanted as long as etcd has it and it was not released here; that Slurm
or etcd does not answer takes nothing away. Now and then the plugins CHECK their work; a pod that others have damaged is
connected again in its namespace, where its processes find another address.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import ClassVar

from isthmus.clients.cni.attachments import Attachments, Found
from isthmus.clients.cni.plugins import CniError
from isthmus.clients.etcd.store import EtcdError
from isthmus.clients.netlink.networks import NetlinkError
from isthmus.model.network import Attachment, Driver, State
from isthmus.model.node_network import SharedPod, shared_prefix
from isthmus.network.drivers.state import PlanError, jobs_here
from isthmus.network.node.attempts import Attempts
from isthmus.network.state.keys import StoredError
from isthmus.network.state.store import StoreError

# How often plugins are asked to CHECK.
CHECK_S = 60.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a pass left.

    Attributes:
        pods: whole ones, by job id.
        errors: name of a namespace, or `state` -> why it is not as wanted.
    """

    pods: Mapping[int, SharedPod] = field(default_factory=dict)
    errors: Mapping[str, str] = field(default_factory=dict)


class AttachedConverger:
    """Carries out what is wanted of a driver's network on this node.

    Attributes:
        driver: whose network it is.

    Args:
        node: this node's name.
        attachments: the pods in the kernel.
        publish: writes a pod's address to etcd.
        clock: seconds that never go back.
    """

    driver: ClassVar[Driver]

    def __init__(
        self,
        node: str,
        attachments: Attachments,
        publish: Callable[[Attachment], object],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._node = node
        self._attachments = attachments
        self._publish = publish
        self._clock = clock
        self._lock = Lock()
        self._checked_s = clock()
        # What an earlier daemon made lives on; rules and names that come before the first pass count on it.
        self.last = Outcome(attachments.observe().pods)

    def run(self, read: Callable[[], State]) -> Outcome:
        """Make the node as the state wants it.

        Args:
            read: gives the newest state; asked once the pass has begun.
        """
        with self._lock:
            attempts = _attempts()
            try:
                state = read()
                desired = jobs_here(state, self._node, self.driver)
            except PlanError as error:
                self.last = Outcome(self.last.pods, {"state": str(error)})
                return self.last
            observed = self._attachments.observe()
            kept = {job: pod for job, pod in observed.pods.items() if desired.get(job) == pod.uid}
            self._remove(observed, desired, attempts)
            damaged = self._damaged(kept)
            pods = {**kept, **self._add(desired, kept.keys() - damaged, attempts)}
            self._publish_all(pods, state, attempts)
            self.last = Outcome(pods, attempts.errors)
            return self.last

    def _remove(self, observed: Found, desired: Mapping[int, int], attempts: Attempts) -> None:
        """Take away jobs that are not wanted, and those whose id is another user's now."""
        foreign = {job for job, pod in observed.pods.items() if job in desired and desired[job] != pod.uid}
        for job in sorted(((observed.pods.keys() | observed.broken) - desired.keys()) | foreign):
            attempts.make(self._name(job), self._attachments.remove, job)

    def _damaged(self, kept: Mapping[int, SharedPod]) -> set[int]:
        if self._clock() - self._checked_s < CHECK_S:
            return set()
        self._checked_s = self._clock()
        # That one is damaged is no failure of this pass, which mends it.
        checks = _attempts()
        return {job for job in sorted(kept) if not checks.make(self._name(job), self._attachments.check, job)}

    def _add(self, desired: Mapping[int, int], whole: set[int], attempts: Attempts) -> dict[int, SharedPod]:
        made: dict[int, SharedPod] = {}

        def add(job: int) -> None:
            made[job] = self._attachments.add(job, desired[job])

        for job in sorted(desired.keys() - whole):
            if self._name(job) not in attempts.errors:
                attempts.make(self._name(job), add, job)
        return made

    def _refuse(self, pods: Mapping[int, SharedPod], state: State, attempts: Attempts) -> None:
        """Report pods that cannot be used as they are; a driver's own."""

    def _name(self, job: int) -> str:
        return f"{shared_prefix(self.driver)}{job}"

    def _publish_all(self, pods: Mapping[int, SharedPod], state: State, attempts: Attempts) -> None:
        self._refuse(pods, state, attempts)
        for job, pod in pods.items():
            attachment = Attachment(job, self._node, pod.address)
            if self._name(job) not in attempts.errors and state.attachments.get((job, self._node)) != attachment:
                attempts.make(self._name(job), self._publish, attachment)


def _attempts() -> Attempts:
    return Attempts(CniError, NetlinkError, OSError, EtcdError, StoreError, StoredError)
