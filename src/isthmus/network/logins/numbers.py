"""Ids of login pods, and the ports that follow from them: pure.

srun listens on ports that the kernel chooses, and Slurm's daemons call it at the login host's address, from where its
own call seemed to come. So each pod on a host has ports of the host's that are forwarded to it, and its kernel chooses
from these alone (ip_local_port_range). The id decides which: what is left of it after division by SLOTS counts the
pods of a host.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from isthmus.model.network import Job, State
from isthmus.network.bounds import JOB_MAX, LOGIN_FIRST

# More login pods than that no host has.
SLOTS = 1024


@dataclass(frozen=True, slots=True)
class Logins:
    """What the admin decides; the same on all nodes.

    Attributes:
        first: the lowest port of login pods, on every login host.
        last: the highest.
        each: how many a pod has.
        host_ports: TCP ports of the cluster's hosts that login pods reach besides what all pods do.
        slurm_user: as whom slurmctld runs.
        linger_s: how long a pod stays after its last session.
        tmp_mib: bound of each of its own /tmp, /var/tmp and /dev/shm.
        is_here: whether this host has login pods.
    """

    first: int
    last: int
    each: int
    host_ports: tuple[int, ...]
    slurm_user: int
    linger_s: float
    tmp_mib: int
    is_here: bool = False

    @property
    def slots(self) -> int:
        """How many pods a host can have."""
        return min(SLOTS, (self.last - self.first + 1) // self.each)

    def ports(self, job: int) -> tuple[int, int]:
        """Return the first and the last port of a pod; where settings shrank, another's ports are not among them."""
        first = self.first + (job - LOGIN_FIRST) % SLOTS * self.each
        return first, first + self.each - 1


def read(raw: Mapping[str, Any], slurm_user: int) -> Logins:
    """Read the daemon's settings of login pods.

    Raises:
        KeyError: a field is missing.
        ValueError: a field has no value that can be.
    """
    first, _, last = str(raw["ports"]).partition("-")
    return Logins(
        int(first),
        int(last),
        int(raw["ports_each"]),
        tuple(map(int, raw["host_ports"])),
        slurm_user,
        float(raw["linger_s"]),
        int(raw["tmp_mib"]),
        bool(raw["here"]),
    )


def logins(state: State) -> list[Job]:
    """Return all login pods."""
    return [job for number, job in state.jobs.items() if number >= LOGIN_FIRST]


def pod_of(state: State, uid: int, node: str) -> Job | None:
    """Return a user's login pod on a node."""
    return next((job for job in logins(state) if job.uid == uid and job.nodes == (node,)), None)


def free(state: State, node: str, settings: Logins) -> int | None:
    """Return an id for one more login pod on a node; None where all ports of the node have their pods."""
    taken = {(job.id - LOGIN_FIRST) % SLOTS for job in logins(state) if job.nodes == (node,)}
    slot = next((slot for slot in range(settings.slots) if slot not in taken), None)
    if slot is None:
        return None
    return next((job for job in range(LOGIN_FIRST + slot, JOB_MAX, SLOTS) if job not in state.jobs), None)
