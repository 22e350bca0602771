"""What `isthmus network list` shows of jobs, users and reservations; of IPv6 nothing where pods have none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Network
from typing import Any

from isthmus.model.network import Driver, Job, State, User
from isthmus.model.networks.ipv6 import beside, block_beside


@dataclass(frozen=True, slots=True)
class Shown:
    """Shows them.

    Attributes:
        begin: what pods' IPv6 addresses begin with; None where they have none.
    """

    begin: IPv6Network | None

    def job(self, job: Job, state: State) -> Mapping[str, Any]:
        """Return a job with the addresses of its pods; those of other drivers than `private` have no IPv6."""
        user, begin = state.users.get(job.uid), self.begin
        has_it = job.addresses if job.driver is Driver.PRIVATE else ()
        return {
            "id": job.id,
            "uid": job.uid,
            "user": user.name if user else str(job.uid),
            "name": job.name,
            "driver": job.driver,
            "nodes": list(job.nodes),
            "addresses": [str(address or "") for address in state.addresses(job)],
            **({"ipv6": [str(beside(begin, address)) for address in has_it]} if begin else {}),
        }

    def user(self, user: User) -> Mapping[str, Any]:
        """Return a user with the part of the range."""
        begin = self.begin
        return {
            "uid": user.uid,
            "user": user.name,
            "vni": user.vni,
            "blocks": list(map(str, user.blocks)),
            **({"ipv6": [str(block_beside(begin, block)) for block in user.blocks]} if begin else {}),
        }

    def reserved(self, user: User, name: str, address: IPv4Address) -> Mapping[str, Any]:
        """Return a reservation."""
        six = {"ipv6": str(beside(self.begin, address))} if self.begin else {}
        return {"user": user.name, "name": name, "address": str(address), **six}
