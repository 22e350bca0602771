"""The newest snapshot of etcd on this node, shared by threads: one sets it, others wait for a condition.

A job whose epilog ran here is out of sight from then on, although etcd has it until all its nodes are done.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from threading import Condition

from isthmus.model.network import Job, State
from isthmus.network.state.snapshot import Snapshot

# What distinguishes a stay of a job from its next one; its name may come later, or change.
_Stay = tuple[object, ...]


class View:
    """What this node knows; may be used by several threads."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._released: dict[int, _Stay] = {}
        self._turn = 0
        self._changed = Condition()

    @property
    def snapshot(self) -> Snapshot:
        """The newest."""
        return self._snapshot

    def state(self) -> State:
        """Return the newest state as this node should follow it: without jobs that were released here."""
        with self._changed:
            state = self._snapshot.state
            if not self._released:
                return state
            return replace(state, jobs={job: one for job, one in state.jobs.items() if job not in self._released})

    def set(self, snapshot: Snapshot) -> None:
        """Take over a newer snapshot; a release is forgotten when its job is gone, or got other addresses."""
        with self._changed:
            self._snapshot = snapshot
            jobs = snapshot.state.jobs
            released = self._released.items()
            self._released = {job: stay for job, stay in released if job in jobs and _stay(jobs[job]) == stay}
            self._notify()

    def release(self, job: int) -> None:
        """Follow a job no longer; until it has other addresses."""
        with self._changed:
            known = self._snapshot.state.jobs.get(job)
            if known is not None:
                self._released[job] = _stay(known)
                self._notify()

    def keep(self, job: int) -> None:
        """Follow a job again that was released here (requeued on the same nodes)."""
        with self._changed:
            if self._released.pop(job, None) is not None:
                self._notify()

    def wait(self, ready: Callable[[State], bool], timeout_s: float) -> bool:
        """Wait until the state is so; return False when it is not in time."""
        with self._changed:
            return self._changed.wait_for(lambda: ready(self._snapshot.state), timeout_s)

    def next_turn(self, turn: int, timeout_s: float) -> int:
        """Wait until something changed after a turn, or for some time; return the turn it is."""
        with self._changed:
            self._changed.wait_for(lambda: self._turn != turn, timeout_s)
            return self._turn

    def _notify(self) -> None:
        self._turn += 1
        self._changed.notify_all()


def _stay(job: Job) -> _Stay:
    return job.uid, job.nodes, job.addresses
