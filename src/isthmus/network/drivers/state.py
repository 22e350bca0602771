"""Whether etcd's state applies to this node; checked by every driver before it plans."""

from __future__ import annotations

from isthmus.model.network import Driver, State


class PlanError(Exception):
    """The state cannot be this node's; nothing may be changed by it."""


def check(state: State, node: str) -> None:
    """Refuse a state that does not fit a node.

    Raises:
        PlanError: the node is not among the members, or two users share a VNI.
    """
    if node not in state.nodes:
        raise PlanError(f"node {node} is no member in etcd; restart isthmus-networkd there, which writes it")
    owners: dict[int, int] = {}
    for user in state.users.values():
        other = owners.setdefault(user.vni, user.uid)
        if other != user.uid:
            raise PlanError(f"users {other} and {user.uid} both have VNI {user.vni}; restore etcd from a backup")


def jobs_here(state: State, node: str, driver: Driver) -> dict[int, int]:
    """Return the jobs that should have a pod of a driver's network on a node: job id -> uid.

    Raises:
        PlanError: as for `check`.
    """
    check(state, node)
    jobs = (job for job in state.jobs.values() if job.driver == driver and node in job.nodes)
    return {job.id: job.uid for job in jobs}
