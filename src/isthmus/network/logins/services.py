"""Services in login pods: a program of the user's follows them while there is a pod here and a cluster of the user's.

Only the user's own API server knows them, and root asks nothing that a user runs. So a process with the user's rights,
in the pod's network, watches the API server and brings the table, as supervisors do for their pods
(`isthmus.cli.login_services`, forked by `isthmus.cli.login_followers`). When to start and to stop it follows from
etcd's state: no home is read, and who has no cluster costs nothing.
"""

from __future__ import annotations

import logging
from typing import Protocol

from isthmus.clients.nftables import NftError
from isthmus.model.network import CONTROL_PLANE, State
from isthmus.network.services.apply import PodServices

# A control plane that moves to another node is away for less.
GONE_S = 60.0
# Before what failed is tried again.
AGAIN_S = 10.0

_log = logging.getLogger(__name__)


class Following(Protocol):
    """The programs that follow Services (`followers`)."""

    def follow(self, uid: int) -> None:
        """Start a user's. Raises OSError."""

    def unfollow(self, uid: int) -> None:
        """End it. Raises OSError."""

    def followed(self) -> frozenset[int]:
        """Return whose run; nobody's once what they run by has ended."""


class FollowedServices:
    """Whose Services are followed here; calls for one user come one after the other."""

    def __init__(self, following: Following, services: PodServices) -> None:
        self._following, self._services = following, services
        self._followed: set[int] = set()
        self._gone_s: dict[int, float] = {}
        self._failed_s: dict[int, float] = {}

    def look(self, uid: int, namespace: str, now_s: float, *, has_cluster: bool) -> None:
        """Follow a user's Services, or no longer.

        Args:
            uid: the user, who has a pod here.
            namespace: the pod's, by its name.
            now_s: by a clock that never goes back.
            has_cluster: whether a control plane of the user's has its address.
        """
        if now_s - self._failed_s.get(uid, -AGAIN_S) < AGAIN_S:
            return
        try:
            self._look(uid, namespace, now_s, has_cluster=has_cluster)
        except (OSError, NftError) as error:
            self._failed_s[uid] = now_s
            _log.warning("services of the login pod of uid %d: %s", uid, error)

    def is_due(self, uid: int, *, has_cluster: bool) -> bool:
        """Return whether a look could change anything."""
        return has_cluster != (uid in self._followed) or uid in self._gone_s

    def recall(self) -> None:
        """Forget those whose program has ended with all others: the next look starts it again."""
        self._followed.intersection_update(self._following.followed())

    def end(self, uid: int) -> None:
        """Follow a user's Services no longer: the pod ends, whose network the program would hold."""
        try:
            if uid in self._followed:
                self._following.unfollow(uid)
        except OSError as error:
            _log.warning("services of the login pod of uid %d: %s", uid, error)
        self._forget(uid)

    def _look(self, uid: int, namespace: str, now_s: float, *, has_cluster: bool) -> None:
        if has_cluster:
            self._gone_s.pop(uid, None)
            if uid not in self._followed:
                self._following.follow(uid)
                self._followed.add(uid)
        elif uid in self._followed and now_s - self._gone_s.setdefault(uid, now_s) >= GONE_S:
            self._following.unfollow(uid)
            self._services.clear(namespace, uid)
            self._forget(uid)

    def _forget(self, uid: int) -> None:
        self._followed.discard(uid)
        self._gone_s.pop(uid, None)
        self._failed_s.pop(uid, None)


def owners_of_clusters(state: State) -> frozenset[int]:
    """Return the users whose control planes have an address; where Services have none, nothing is followed."""
    return frozenset(job.uid for job in state.jobs.values() if job.reservation == CONTROL_PLANE)
