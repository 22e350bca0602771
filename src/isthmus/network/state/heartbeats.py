"""Which nodes live, and which have been silent for so long that their leases and login pods end.

Jobs end with Slurm's word (`ended`); leases and login pods are ended by their own node's daemon, and a node that never
returns has none. So each daemon keeps a lease of etcd's alive, and with it a key. Keeping it alive writes nothing. The
controller's daemon reads these keys while a node with leases or login pods exists, and ends those of a node when

- the key has expired: the node was not heard of for half of the time, and
- it then was missing from all answers for the other half. So a node has its time, too, to write the key again after
  etcd itself was away, or was set back to a snapshot. A new leader of etcd counts from the beginning by itself.

The transaction that ends them fails where the key is there again. A node that was cut off for longer learns it by the
watch, as any other change: its legs and login pods are then removed there. Until then it may send from an address that
is another pod's of the same user; the other nodes have no way to it any more.

    /isthmus/<cluster>/heartbeats/alive/<node>   goes with the lease of etcd
    /isthmus/<cluster>/heartbeats/known/<node>   stays: a node that never had such a key (an older daemon) is not judged

They are none of the pod networks' keys, which all nodes watch.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass

from isthmus.clients.etcd.store import Delete, DeniedError, Etcd, EtcdError, Put
from isthmus.model.network import State
from isthmus.network.bounds import LOGIN_FIRST

# How often a node is heard of within its lease of etcd's, and the longest pause after a beat that failed.
BEATS, RETRY_MAX_S = 3, 30.0
# How often the controller's daemon looks within the whole time, and at most.
LOOKS, LOOK_MAX_S = 20, 30.0

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Times:
    """What follows from the time after which a silent node loses its leases.

    Attributes:
        ttl_s: that time; 0 for never.
    """

    ttl_s: int

    @property
    def etcd_s(self) -> int:
        """Of the lease of etcd's."""
        return math.ceil(self.ttl_s / 2)

    @property
    def missing_s(self) -> float:
        """How long the key is then missing."""
        return self.ttl_s - self.etcd_s

    @property
    def beat_s(self) -> float:
        """Between two beats."""
        return self.etcd_s / BEATS

    @property
    def retry_s(self) -> float:
        """After a beat that failed."""
        return min(self.beat_s, RETRY_MAX_S)

    @property
    def look_s(self) -> float:
        """Between two looks of the controller's."""
        return min(self.ttl_s / LOOKS, LOOK_MAX_S)


@dataclass(frozen=True, slots=True)
class Heard:
    """What etcd has.

    Attributes:
        alive: nodes that were heard of.
        known: nodes that were ever.
    """

    alive: frozenset[str]
    known: frozenset[str]


class Heartbeats:
    """The keys of one cluster; every method raises EtcdError."""

    def __init__(self, etcd: Etcd, cluster: str) -> None:
        self._etcd = etcd
        self._prefix = f"/isthmus/{cluster}/heartbeats/"

    def alive(self, node: str) -> str:
        """Return the key that is there while a node is heard of."""
        return f"{self._prefix}alive/{node}"

    def read(self) -> Heard:
        """Return who was heard of."""
        keys = [key.removeprefix(self._prefix).split("/", 1) for key in self._etcd.range(self._prefix).entries]
        return Heard(*(frozenset(name for kind, name in keys if kind == one) for one in ("alive", "known")))

    def begin(self, node: str, ttl_s: int) -> str:
        """Write a node's keys; return the lease of etcd's that is to be kept alive."""
        lease = self._etcd.grant(ttl_s)
        try:
            self._etcd.transact({}, [Put(self.alive(node), "", lease), Put(self._known(node), "")])
        except EtcdError:
            # The next try makes another one.
            with suppress(EtcdError):
                self._etcd.revoke(lease)
            raise
        return lease

    def goes_on(self, lease: str) -> bool:
        """Keep a lease of etcd's alive; return whether it was."""
        return self._etcd.keep_alive(lease)

    def withdraw(self, node: str) -> None:
        """Remove a node's keys: it is not judged any more. Where nobody may write them there are none."""
        try:
            self._etcd.transact({}, [Delete(self.alive(node)), Delete(self._known(node))])
        except DeniedError as error:
            _log.warning("heartbeats of %s: %s", node, error)

    def _known(self, node: str) -> str:
        return f"{self._prefix}known/{node}"


class Pulse:
    """One node's beats."""

    def __init__(self, heartbeats: Heartbeats, node: str, times: Times) -> None:
        self._heartbeats, self._node, self._times = heartbeats, node, times
        self._lease = ""

    def beat(self) -> None:
        """Let etcd hear of this node."""
        if self._lease and self._heartbeats.goes_on(self._lease):
            return
        if self._lease:
            # What was ended meanwhile comes by the watch.
            _log.warning("etcd had not heard of this node for %d s; leases here may have ended", self._times.etcd_s)
        self._lease = self._heartbeats.begin(self._node, self._times.etcd_s)


class Silence:
    """Remembers since when each node has been missing.

    Args:
        missing_s: how long one must be.
    """

    def __init__(self, missing_s: float) -> None:
        self._missing_s = missing_s
        self._since_s: dict[str, float] = {}

    def judge(self, tied: Collection[str], heard: Heard, now_s: float) -> tuple[str, ...]:
        """Return the nodes whose leases and login pods end now.

        Args:
            tied: nodes that have any.
            heard: etcd's newest answer.
            now_s: by a clock that never goes back.
        """
        missing = (set(tied) & heard.known) - heard.alive
        self._since_s = {node: self._since_s.get(node, now_s) for node in missing}
        return tuple(node for node, since_s in sorted(self._since_s.items()) if now_s - since_s >= self._missing_s)

    def forget(self) -> None:
        """Begin again: etcd did not answer, so nodes could not be heard of either."""
        self._since_s = {}


def ties(state: State, node: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the ids of a node's login pods, and the users who have a lease there."""
    pods = tuple(number for number, job in state.jobs.items() if number >= LOGIN_FIRST and node in job.nodes)
    return pods, tuple(uid for uid, where in state.leases if where == node)


def tied(state: State) -> frozenset[str]:
    """Return the nodes that have leases or login pods."""
    pods = (job.nodes for number, job in state.jobs.items() if number >= LOGIN_FIRST)
    return frozenset(node for _, node in state.leases).union(*pods)
