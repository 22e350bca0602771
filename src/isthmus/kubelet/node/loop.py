"""Registers the node object, renews its lease, and publishes its status when it changes.

Settings that depend on Slurm (features, nodes, QOS) are refreshed with it. Slurm is queried less often while
nothing changes (`pace`), and before a pod is refused for something that was missing the last time. With isthmus-jobsd
(`feed`), only the user's own partitions, QOS and limits are queried, and rarely.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from isthmus.clients.kube.api import ConflictError, Kube, KubeError, NotFoundError, Object, Patch
from isthmus.clients.slurm.commands import SlurmError
from isthmus.clients.slurm.offer import renewed
from isthmus.kubelet import metrics
from isthmus.kubelet.node import node_object as node
from isthmus.kubelet.node.node_object import Host
from isthmus.kubelet.objects.config import Config
from isthmus.kubelet.slurm import pace
from isthmus.kubelet.slurm.feed import Feed
from isthmus.model.job_feed import Rows
from isthmus.model.slurm.cluster import SlurmCluster
from isthmus.support.backoff import Backoff
from isthmus.support.threads import Threads

LEASE_S = 10.0
# Between queries of Slurm at the start: after an outage all users' kubelets make them.
_ASK_S, _ASK_MOST_S = 2.0, 30.0
# An unchanged status is published this often as a sign of life.
_ANYHOW_S = 300.0
_LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
_TIMES = ("lastHeartbeatTime",)

_log = logging.getLogger(__name__)
Offer = Callable[[], SlurmCluster]


class NodeLoop:
    """Keeps the node object.

    Args:
        kube: the API server.
        config: gets changed settings.
        host: where the kubelet runs.
        offer: queries Slurm; blocks.
        quiet_s: returns the time since the last change of a pod.
        feed: provides nodes from isthmus-jobsd; None if it is not configured.
    """

    def __init__(
        self,
        kube: Kube,
        config: Config,
        host: Host,
        offer: Offer,
        quiet_s: Callable[[], float] = lambda: 0.0,
        feed: Feed | None = None,
    ) -> None:
        self._kube, self._config, self._host, self._offer = kube, config, host, offer
        self._threads = Threads("sinfo", 1)
        self._first = config.settings
        self._slurm: SlurmCluster | None = None
        self._node: Object | None = None
        self._written_s = -_ANYHOW_S
        self._quiet_s, self._feed = quiet_s, feed
        # What was queried here, and rows that the feed has sent since.
        self._asked: SlurmCluster | None = None
        self._fed: Rows | None = None
        self._fed_s = float("-inf")
        self._spread = random.uniform(1, 1 + pace.SPREAD)  # noqa: S311
        self._asked_s = self._changed_s = time.monotonic()
        self._renewing = asyncio.Lock()
        config.renew = self.renew

    async def register(self) -> None:
        """Create or update the node object; returns when Slurm has answered once, before any pod is admitted.

        Raises:
            KubeError: the API server refused the write or did not answer.
        """
        backoff = Backoff(_ASK_S, _ASK_MOST_S)
        while not await self._ask():
            await asyncio.sleep(backoff.next_s())
        assert self._slurm is not None  # noqa: S101  set by _ask
        made = node.node_object(self._first, self._slurm, self._host, None, datetime.now(UTC))
        path = f"/api/v1/nodes/{self._first.node}"
        try:
            self._node = await self._kube.create("/api/v1/nodes", dict(made))
        except ConflictError:
            labels = {"metadata": {"labels": made["metadata"]["labels"]}}
            self._node = await self._kube.patch(path, labels)
        await self._write()

    async def lease(self) -> None:
        """Renew the node's lease, for ever."""
        path = f"{_LEASES}/{self._first.node}"
        kept: Object | None = None
        while True:
            try:
                now = datetime.now(UTC)
                if kept is None:
                    try:
                        kept = await self._kube.get(path)
                    except NotFoundError:
                        kept = await self._kube.create(_LEASES, node.lease(self._first, None, now))
                kept = await self._kube.replace(path, node.lease(self._first, kept, now))
            except KubeError as error:
                _log.warning("the lease is not renewed: %s", error)
                kept = None
            await asyncio.sleep(LEASE_S)

    async def status(self) -> None:
        """Query Slurm and publish changes, for ever."""
        while True:
            await asyncio.sleep(pace.OFFER_S * (1 + pace.SPREAD * random.random()))  # noqa: S311
            try:
                if self.is_due():
                    await self._ask()
                elif self._feed and self._is_fed:
                    self._take(self._feed)
                await self._write()
            except NotFoundError:
                await self.register()
            except KubeError as error:
                _log.warning("the node's status is not written: %s", error)

    async def read_labels(self) -> None:
        """Read the labels of the node object, to which the user may have added some.

        Raises:
            KubeError: the API server did not answer.
        """
        self._node = await self._kube.get(f"/api/v1/nodes/{self._first.node}")
        if self._slurm is not None:
            self._know(self._slurm)

    def is_due(self) -> bool:
        """Return whether to query Slurm again."""
        now_s = time.monotonic()
        if self._is_fed:
            self._fed_s = now_s
            return now_s - self._asked_s >= pace.OFFER_FED_S * self._spread
        quiet_s = min(self._quiet_s(), now_s - self._changed_s)
        # Kubelets that lose their feed together have no recent answer.
        return self._slurm is None or now_s - max(self._asked_s, self._fed_s) >= pace.offer_s(quiet_s)

    @property
    def _is_fed(self) -> bool:
        return bool(self._asked and self._feed and self._feed.usable() and self._feed.nodes() is not None)

    def _take(self, feed: Feed) -> None:
        """Observe the feed's nodes."""
        rows = feed.nodes()
        if self._asked is None or rows is None or not feed.is_answered:
            self._slurm = None
            return
        if rows is self._fed and self._slurm is not None:
            return
        try:
            self._know(renewed(self._asked, rows.values()))
        except ValueError as error:
            feed.distrust(f"its nodes cannot be read: {error}")
            return
        self._fed = rows

    async def renew(self) -> None:
        """Query Slurm unless the last answer is recent; concurrent callers share one query."""
        async with self._renewing:
            least_s = pace.OFFER_RENEWED_S if self._is_fed else pace.OFFER_S
            if time.monotonic() - self._asked_s >= least_s:
                await self._ask()

    async def _ask(self) -> bool:
        self._asked_s = time.monotonic()
        metrics.SLURM_OFFERS.inc()
        try:
            self._asked = await self._threads.call(self._offer)
        except SlurmError as error:
            _log.warning("%s", error)
            self._slurm = None
            return False
        self._fed = None
        self._know(self._asked)
        return True

    def _know(self, slurm: SlurmCluster) -> None:
        self._slurm = slurm
        known = (self._node or {}).get("metadata", {}).get("labels")
        settings = node.settings_with(self._first, slurm, self._host, known)
        if settings != self._config.settings:
            self._config.settings, self._changed_s = settings, time.monotonic()

    async def _write(self) -> None:
        path = f"/api/v1/nodes/{self._first.node}"
        shown = node.node_status(self._first, self._slurm, self._host, self._node, datetime.now(UTC))
        is_changed = _differs(shown, (self._node or {}).get("status", {}))
        if is_changed:
            self._changed_s = time.monotonic()
        elif time.monotonic() - self._written_s < _ANYHOW_S:
            return
        await self._kube.patch(f"{path}/status", {"status": shown})
        wanted = None if self._slurm is None else _merged(self._node or {}, node.taints(self._slurm))
        if wanted is not None and wanted != _taints(self._node or {}):
            await self._kube.patch(path, {"spec": {"taints": wanted}}, Patch.MERGE)
        self._node = await self._kube.get(path)
        self._written_s = time.monotonic()


def _merged(old: Object, ours: list[dict[str, str]]) -> list[dict[str, Any]]:
    """Return the node's taints: this kubelet's current ones, others unchanged."""
    return [*(one for one in _taints(old) if one["key"] != node.DRAINED), *ours]


def _taints(found: Object) -> list[dict[str, Any]]:
    return [*(found.get("spec", {}).get("taints") or ())]


def _differs(new: Object, old: Object) -> bool:
    return any(_timeless(old.get(key)) != _timeless(value) for key, value in new.items())


def _timeless(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _timeless(one) for key, one in value.items() if key not in _TIMES and one != ""}
    return [_timeless(one) for one in value] if isinstance(value, list) else value
