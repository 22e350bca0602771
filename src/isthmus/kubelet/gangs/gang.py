"""State machine of one gang; pure.

    waiting --admit--> starting --every job has its nodes--> together
       ^                  |
       +----withdraw------+   one did not get its nodes in time

Pods that come later start alone: replacements, and pods beyond the group's minimum.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from isthmus.kubelet.gangs.fitting import Need


class Stage(StrEnum):
    """Stage of a pod of a gang."""

    WAITING = "waiting"
    STARTING = "starting"
    TOGETHER = "together"


@dataclass(slots=True)
class Member:
    """A pod of a gang: its job's requests, its stage, and whether its job has nodes."""

    needs: list[Need]
    stage: Stage = Stage.WAITING
    has_nodes: bool = False


@dataclass(slots=True)
class Gang:
    """A gang; `members` are the living pods, by UID."""

    members: dict[str, Member] = field(default_factory=dict)

    def of(self, stage: Stage) -> list[str]:
        """Return the members at a stage."""
        return [uid for uid, member in self.members.items() if member.stage is stage]

    def join(self, uid: str, needs: list[Need]) -> Stage:
        """Add a pod that is ready to start; return its stage, which a retry does not change."""
        return self.members.setdefault(uid, Member(needs)).stage

    def adopt(self, uid: str) -> None:
        """Add a pod whose job was submitted before this kubelet started."""
        self.members[uid] = Member([], Stage.TOGETHER, has_nodes=True)

    def missing(self, least: int) -> int:
        """Return how many pods are missing before any may start."""
        return max(0, least - len(self.members))

    def wanted(self) -> list[Need]:
        """Return the requests of all waiting members."""
        return [need for uid in self.of(Stage.WAITING) for need in self.members[uid].needs]

    def is_loose(self, least: int) -> bool:
        """Return whether a waiting pod may start alone."""
        return len(self.of(Stage.TOGETHER)) >= least

    def move(self, uids: list[str], stage: Stage) -> None:
        """Move members to a stage."""
        for uid in uids:
            if uid in self.members:
                self.members[uid].stage = stage
                self.members[uid].has_nodes = stage is Stage.TOGETHER

    def has_all_nodes(self) -> bool:
        """Return whether every job of those that start has its nodes."""
        return all(self.members[uid].has_nodes for uid in self.of(Stage.STARTING))
