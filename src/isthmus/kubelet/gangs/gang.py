"""One gang: who waits, who was let go, who has started; pure.

    waiting --admit--> starting --every job has its nodes--> together
       ^                  |
       +----withdraw------+   one did not get its nodes in time

Pods that come when enough are together start by themselves: what replaces a pod, and what is beyond the least number.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from isthmus.kubelet.gangs.fitting import Need


class Stage(StrEnum):
    """How far a pod of a gang is."""

    WAITING = "waiting"
    STARTING = "starting"
    TOGETHER = "together"


@dataclass(slots=True)
class Member:
    """A pod of a gang: what its job needs, how far it is, whether its job has nodes."""

    needs: list[Need]
    stage: Stage = Stage.WAITING
    has_nodes: bool = False


@dataclass(slots=True)
class Gang:
    """All that is known of one; `members` are those whose pods live, by UID."""

    members: dict[str, Member] = field(default_factory=dict)

    def of(self, stage: Stage) -> list[str]:
        """Return the members at a stage."""
        return [uid for uid, member in self.members.items() if member.stage is stage]

    def join(self, uid: str, needs: list[Need]) -> Stage:
        """Take a pod that could start now; return how far it is: one that tries once more is where it was."""
        return self.members.setdefault(uid, Member(needs)).stage

    def adopt(self, uid: str) -> None:
        """Take a pod that has its job from before this kubelet began."""
        self.members[uid] = Member([], Stage.TOGETHER, has_nodes=True)

    def missing(self, least: int) -> int:
        """Return how many more pods there must be before any may start."""
        return max(0, least - len(self.members))

    def wanted(self) -> list[Need]:
        """Return what all that wait need at once."""
        return [need for uid in self.of(Stage.WAITING) for need in self.members[uid].needs]

    def is_loose(self, least: int) -> bool:
        """Tell whether who waits may start by himself."""
        return len(self.of(Stage.TOGETHER)) >= least

    def move(self, uids: list[str], stage: Stage) -> None:
        """Bring members to a stage."""
        for uid in uids:
            if uid in self.members:
                self.members[uid].stage = stage
                self.members[uid].has_nodes = stage is Stage.TOGETHER

    def has_all_nodes(self) -> bool:
        """Tell whether every job of those that start has its nodes."""
        return all(self.members[uid].has_nodes for uid in self.of(Stage.STARTING))
