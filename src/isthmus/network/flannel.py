"""Makes this node's pods of Flannel's network as etcd's state wants them, and tells the others their addresses.

A pass looks at what there is, takes away what is not wanted, connects what is missing or half made, and writes to etcd
the address of each pod that etcd does not know. It has a lock of its own: plugins take tens of milliseconds, and
private networks do not wait for them. A job is wanted as long as etcd has it and it was not released here; that Slurm
or etcd does not answer takes nothing away. Now and then the plugins CHECK their work; a pod that others have damaged is
connected anew in its namespace, where its processes find another address.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from threading import Lock

from isthmus.clients.cni import CniError
from isthmus.clients.etcd import EtcdError
from isthmus.clients.flannel import Attachments, Found
from isthmus.clients.netlink import NetlinkError
from isthmus.model.network import Attachment, State
from isthmus.model.node_network import FLANNEL_NAMESPACE, FlannelPod
from isthmus.network.keys import StoredError
from isthmus.network.plan import PlanError, on_flannel
from isthmus.network.store import StoreError

# How often plugins are asked to CHECK.
CHECK_S = 60.0

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a pass left.

    Attributes:
        pods: whole ones, by job id.
        errors: name of a namespace, or `state` -> why it is not as wanted.
    """

    pods: Mapping[int, FlannelPod] = field(default_factory=dict)
    errors: Mapping[str, str] = field(default_factory=dict)


class FlannelConverger:
    """Carries out what is wanted of Flannel's network on this node.

    Args:
        node: this node's name.
        attachments: the pods in the kernel.
        tell: writes a pod's address to etcd.
        clock: seconds that never go back.
    """

    def __init__(
        self,
        node: str,
        attachments: Attachments,
        tell: Callable[[Attachment], object],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._node = node
        self._attachments = attachments
        self._tell = tell
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
            errors: dict[str, str] = {}
            try:
                state = read()
                wanted = on_flannel(state, self._node)
            except PlanError as error:
                self.last = Outcome(self.last.pods, {"state": str(error)})
                return self.last
            found = self._attachments.observe()
            kept = {job: pod for job, pod in found.pods.items() if wanted.get(job) == pod.uid}
            self._remove(found, wanted, errors)
            damaged = self._damaged(kept)
            pods = {**kept, **self._add(wanted, kept.keys() - damaged, errors)}
            self._tell_all(pods, state, errors)
            self.last = Outcome(pods, errors)
            return self.last

    def _remove(self, found: Found, wanted: Mapping[int, int], errors: dict[str, str]) -> None:
        """Take away jobs that are not wanted, and those whose id is another user's now."""
        foreign = {job for job, pod in found.pods.items() if job in wanted and wanted[job] != pod.uid}
        for job in sorted(((found.pods.keys() | found.broken) - wanted.keys()) | foreign):
            self._guarded(job, errors, lambda job=job: self._attachments.remove(job))  # type: ignore[misc]

    def _damaged(self, kept: Mapping[int, FlannelPod]) -> set[int]:
        if self._clock() - self._checked_s < CHECK_S:
            return set()
        self._checked_s = self._clock()
        wrong: dict[str, str] = {}
        return {
            job
            for job in sorted(kept)
            if not self._guarded(job, wrong, lambda job=job: self._attachments.check(job))  # type: ignore[misc]
        }

    def _add(self, wanted: Mapping[int, int], whole: set[int], errors: dict[str, str]) -> dict[int, FlannelPod]:
        made: dict[int, FlannelPod] = {}

        def add(job: int) -> None:
            made[job] = self._attachments.add(job, wanted[job])

        for job in sorted(wanted.keys() - whole):
            if _name(job) not in errors:
                self._guarded(job, errors, lambda job=job: add(job))  # type: ignore[misc]
        return made

    def _tell_all(self, pods: Mapping[int, FlannelPod], state: State, errors: dict[str, str]) -> None:
        for job, pod in pods.items():
            attachment = Attachment(job, self._node, pod.address)
            if _name(job) not in errors and state.attachments.get((job, self._node)) != attachment:
                self._guarded(job, errors, lambda attachment=attachment: self._tell(attachment))  # type: ignore[misc]

    @staticmethod
    def _guarded(job: int, errors: dict[str, str], act: Callable[[], object]) -> bool:
        try:
            act()
        except (CniError, NetlinkError, OSError, EtcdError, StoreError, StoredError) as error:
            _log.warning("%s: %s", _name(job), error)
            errors[_name(job)] = str(error)
            return False
        return True


def _name(job: int) -> str:
    return f"{FLANNEL_NAMESPACE}{job}"
