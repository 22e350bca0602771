"""Gang scheduling of pods that belong to a PodGroup.

A pod whose images and volumes are ready waits in `turn` until its gang is complete and all of its jobs fit into what
Slurm has free at once; then all are submitted together. Their supervisors get no plan before every job has
its nodes (`together`), so no container runs before. If one has none after some seconds, because another job was
faster, all jobs are cancelled and wait again: no allocation is held while another pod waits. Gangs of a user
start one after the other, so two that need the same nodes never take half of them each.

docs/explanation/gangs.md says why this is no heterogeneous job and no single allocation. Slurm is queried once per
check, with an exponential backoff while the gang does not fit: a thousand users with one each make 17 queries a second.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from isthmus.clients.kube.api import KubeError, NotFoundError, Object
from isthmus.clients.slurm.commands import SlurmError
from isthmus.kubelet.gangs import fitting, groups
from isthmus.kubelet.gangs.gang import Gang, Stage
from isthmus.kubelet.gangs.groups import Group
from isthmus.kubelet.gangs.served import PodGroups, Reader, UnknownVersionError
from isthmus.model.slurm.cluster import NodeRoom
from isthmus.support.backoff import Backoff
from isthmus.support.threads import Threads

WAITING, NEVER = "WaitingForGang", "Unschedulable"
_PAUSE_S, _LONGEST_S = 2.0, 60.0
_SHORT = "Waits for"

_log = logging.getLogger(__name__)
Show = Callable[[str, str], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class _Worker:
    """Callbacks of a waiting pod: show its reason; give its job back."""

    show: Show
    withdraw: Callable[[], None]


class Gangs:
    """All gangs of the user's cluster.

    Args:
        kube: reads PodGroups.
        rooms: returns the free resources of a partition's nodes, "" for the default partition; blocks.
        start_s: how long the jobs of a gang may take to get their nodes.
        pauses: the first and the longest between two checks, seconds.
    """

    def __init__(
        self,
        kube: Reader,
        rooms: Callable[[str], list[NodeRoom]],
        start_s: float,
        pauses: tuple[float, float] = (_PAUSE_S, _LONGEST_S),
    ) -> None:
        self._groups, self._rooms, self._start_s, self._pauses = PodGroups(kube), rooms, start_s, pauses
        self._threads = Threads("sinfo-gangs", 1)
        self._gangs: dict[Group, Gang] = {}
        self._of: dict[str, Group] = {}
        self._workers: dict[str, _Worker] = {}
        self._partitions: dict[str, str] = {}
        self._tasks: dict[Group, asyncio.Task[None]] = {}
        self._waiting: set[asyncio.Event] = set()
        self._starting = asyncio.Lock()

    def stop(self) -> None:
        """Stop; no further gang starts."""
        for task in self._tasks.values():
            task.cancel()
        self._threads.stop()

    async def turn(self, pod: Object, options: tuple[str, ...], show: Show, withdraw: Callable[[], None]) -> bool:
        """Wait until a pod may be submitted, and return True; immediately for a pod of no group.

        Args:
            pod: the pod.
            options: of its job.
            show: publishes why it waits: a reason and a message.
            withdraw: called when its job must be cancelled, after which it waits here again.
        """
        group, uid = groups.of(pod), str(pod["metadata"]["uid"])
        if group is None:
            return True
        gang = self._gangs.setdefault(group, Gang())
        self._of[uid], self._workers[uid] = group, _Worker(show, withdraw)
        self._partitions[uid] = next((word[12:] for word in options if word.startswith("--partition=")), "")
        gang.join(uid, fitting.needs(options))
        self._notify()
        if self._is_idle(group):
            self._tasks[group] = asyncio.create_task(self._run(group, gang), name=f"gang {group.name}")
        try:
            await self._until(lambda: self._stage(uid) is not Stage.WAITING)
        except asyncio.CancelledError:
            self.leave(uid)
            raise
        return True

    def adopt(self, pod: Object) -> None:
        """Add a pod whose job was submitted before this kubelet started."""
        if group := groups.of(pod):
            uid = str(pod["metadata"]["uid"])
            self._of[uid] = group
            self._gangs.setdefault(group, Gang()).adopt(uid)

    def has_nodes(self, uid: str) -> None:
        """Observe that a pod's job has its nodes."""
        group = self._of.get(uid)
        if group and (member := self._gangs[group].members.get(uid)) and not member.has_nodes:
            member.has_nodes = True
            self._notify()

    def leave(self, uid: str) -> None:
        """Remove a pod that has ended or is deleted."""
        group = self._of.pop(uid, None)
        self._workers.pop(uid, None)
        self._partitions.pop(uid, None)
        if group and self._gangs[group].members.pop(uid, None):
            self._notify()
            if not self._gangs[group].members and self._is_idle(group):
                del self._gangs[group]

    async def together(self, uid: str) -> None:
        """Wait until every job of a pod's gang has its nodes; at once for a pod of none."""
        await self._until(lambda: self._stage(uid) in (None, Stage.TOGETHER))

    def _stage(self, uid: str) -> Stage | None:
        group = self._of.get(uid)
        member = self._gangs[group].members.get(uid) if group else None
        return member.stage if member else None

    def _is_idle(self, group: Group) -> bool:
        return group not in self._tasks or self._tasks[group].done()

    async def _until(self, ready: Callable[[], bool]) -> None:
        while not ready():
            event = asyncio.Event()
            self._waiting.add(event)
            try:
                await event.wait()
            finally:
                self._waiting.discard(event)

    def _notify(self) -> None:
        for event in self._waiting:
            event.set()

    async def _run(self, group: Group, gang: Gang) -> None:
        """Schedule a gang while members wait."""
        backoff = Backoff(*self._pauses)
        while gang.of(Stage.WAITING):
            try:
                reason, message = await self._look(group, gang)
            except Exception as error:
                _log.exception("%s", group)
                reason, message = WAITING, f"{group}: {type(error).__name__}: {error}"
            if message:
                await self._show(gang, reason, message)
                await self._pause(gang, backoff.next_s())
                if message.startswith(_SHORT):
                    # An incomplete gang makes no query.
                    backoff.reset()
        # No other task runs between this and the end of this one.
        if not gang.members:
            self._gangs.pop(group, None)

    async def _look(self, group: Group, gang: Gang) -> tuple[str, str]:
        """Start a gang; return why it cannot start, or None."""
        try:
            least = groups.least(await self._groups.get(group))
        except NotFoundError:
            return WAITING, f"{group} is not there; create it in the namespace of the pod"
        except (KubeError, UnknownVersionError) as error:
            return WAITING, f"{group} is not known: {error}"
        if gang.is_loose(least):
            gang.move(gang.of(Stage.WAITING), Stage.TOGETHER)
            self._notify()
            return "", ""
        if count := gang.missing(least):
            return WAITING, f"{_SHORT} {count} more of the {least} pods that {group} needs: none starts before"
        async with self._starting:
            return await self._start(group, gang)

    async def _start(self, group: Group, gang: Gang) -> tuple[str, str]:
        uids, wanted = gang.of(Stage.WAITING), gang.wanted()
        if not uids:
            return "", ""
        try:
            rooms = await self._threads.call(self._rooms, self._partitions.get(uids[0], ""))
        except SlurmError as error:
            return WAITING, f"{group}: Slurm did not say what is free: {error}"
        # If Slurm shows no node of the partition, sbatch reports the problem.
        if rooms and (why := fitting.never(wanted, rooms)):
            return NEVER, f"{group} can never start: {why}; ask for less"
        if rooms and not fitting.fits(wanted, rooms):
            cpus, free = sum(need.cpus for need in wanted), sum(node.cpus for node in rooms)
            return (
                WAITING,
                f"{group} waits until its {len(uids)} pods fit at once: they need {cpus} CPUs, {free} are free",
            )
        gang.move(uids, Stage.STARTING)
        self._notify()
        try:
            async with asyncio.timeout(self._start_s):
                await self._until(gang.has_all_nodes)
        except TimeoutError:
            return self._withdraw(group, gang)
        gang.move(gang.of(Stage.STARTING), Stage.TOGETHER)
        self._notify()
        return "", ""

    def _withdraw(self, group: Group, gang: Gang) -> tuple[str, str]:
        uids = gang.of(Stage.STARTING)
        lacking = sum(not gang.members[uid].has_nodes for uid in uids)
        gang.move(uids, Stage.WAITING)
        for uid in uids:
            self._workers[uid].withdraw()
        return WAITING, f"{group} tries again: {lacking} of its {len(uids)} pods got no node within {self._start_s:g} s"

    async def _show(self, gang: Gang, reason: str, message: str) -> None:
        for uid in gang.of(Stage.WAITING):
            if worker := self._workers.get(uid):
                try:
                    await worker.show(reason, message)
                except KubeError as error:
                    _log.info("the waiting reason of pod %s is not published: %s", uid, error)

    async def _pause(self, gang: Gang, pause_s: float) -> None:
        """Wait until the time is over or the members change."""
        before = set(gang.members)
        try:
            async with asyncio.timeout(pause_s):
                await self._until(lambda: set(gang.members) != before)
        except TimeoutError:
            return
