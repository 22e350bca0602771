"""The newest snapshot of etcd on this node, shared by threads: one sets it, others wait for what they need.

A job whose epilog ran here is out of sight from then on, although etcd has it until all its nodes are done.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from threading import Condition

from isthmus.model.network import State
from isthmus.network.snapshot import Snapshot


class View:
    """What this node knows; may be used by several threads."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._released: dict[int, int] = {}
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
        """Take over a newer snapshot; a release is forgotten when its job is gone, or was written anew."""
        with self._changed:
            self._snapshot = snapshot
            jobs = snapshot.jobs()
            self._released = {job: seen for job, seen in self._released.items() if jobs.get(job) == seen}
            self._tell()

    def release(self, job: int) -> None:
        """Follow a job no longer; until it is written anew."""
        with self._changed:
            revision = self._snapshot.jobs().get(job)
            if revision is not None:
                self._released[job] = revision
                self._tell()

    def keep(self, job: int) -> None:
        """Follow a job again that was released here (requeued on the same nodes)."""
        with self._changed:
            if self._released.pop(job, None) is not None:
                self._tell()

    def wait(self, ready: Callable[[State], bool], timeout_s: float) -> bool:
        """Wait until the state is so; return False when it is not in time."""
        with self._changed:
            return self._changed.wait_for(lambda: ready(self._snapshot.state), timeout_s)

    def next_turn(self, turn: int, timeout_s: float) -> int:
        """Wait until something changed after a turn, or for some time; return the turn it is."""
        with self._changed:
            self._changed.wait_for(lambda: self._turn != turn, timeout_s)
            return self._turn

    def _tell(self) -> None:
        self._turn += 1
        self._changed.notify_all()
