"""Incremental rendering of all users' zones: only users with a change are rendered again.

Every job of any user comes by here on every node, and what it changes is few lines of one user's. So the jobs are kept
by user, and the text of each user as long as nothing of theirs changed. States share what did not change, so a look at
identity shows what changed; a state that shares nothing is merely more work. The memory makes it faster, never
different: a new object that follows a state gives the same texts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from ipaddress import IPv6Network
from typing import TypeVar

from isthmus.model.network import Driver, Job, State
from isthmus.network.dns import records as dns
from isthmus.network.drivers.registry import definition

Key = TypeVar("Key")
Networks = tuple[Driver, ...]

PRIVATE: Networks = (Driver.PRIVATE,)


class Zones:
    """What is below `<user>.<domain>`, for all users, as lines in hosts(5) form.

    Args:
        domain: the cluster's.
        ipv6: what the IPv6 addresses of private networks begin with; None where they have none.
    """

    def __init__(self, domain: str, ipv6: IPv6Network | None = None) -> None:
        self._domain = domain
        self._ipv6 = ipv6
        self._state = State()
        self._jobs: dict[int, dict[int, Job]] = {}
        self._texts: dict[Networks, dict[int, str]] = {}
        self._whole: dict[Networks, str] = {}

    def follow(self, state: State) -> None:
        """Take over a state."""
        changed = self._changed(state)
        self._state = state
        if changed:
            self._whole.clear()
        for texts in self._texts.values():
            for uid in changed & texts.keys():
                del texts[uid]

    def text(self, uid: int, networks: Networks = PRIVATE) -> str:
        """Return the names of a user in some networks; none of a user without one."""
        texts = self._texts.setdefault(networks, {})
        if uid not in texts:
            user = self._state.users.get(uid)
            jobs = [job for job in self._jobs.get(uid, {}).values() if job.driver in networks]
            has_reserved = any(definition(each).has_addresses for each in networks)
            reserved = user.reserved if user and has_reserved else {}
            addresses = self._state.addresses
            texts[uid] = dns.hosts(user.name, jobs, reserved, addresses, self._domain, self._ipv6) if user else ""
        return texts[uid]

    def all_users(self, networks: Networks) -> str:
        """Return the names of all users in some networks."""
        if networks not in self._whole:
            self._whole[networks] = "".join(self.text(uid, networks) for uid in sorted(self._state.users))
        return self._whole[networks]

    def _changed(self, state: State) -> set[int]:
        """Return whose names may be others, and keep the jobs by user."""
        before = self._state
        uids = set(_differing(before.users, state.users))
        for number in _differing(before.jobs, state.jobs):
            had, has = before.jobs.get(number), state.jobs.get(number)
            if had:
                del self._jobs[had.uid][number]
            if has:
                self._jobs.setdefault(has.uid, {})[number] = has
            uids |= {job.uid for job in (had, has) if job}
        for number, _ in _differing(before.attachments, state.attachments):
            if number in state.jobs:
                uids.add(state.jobs[number].uid)
        return uids


def _differing(before: Mapping[Key, object], after: Mapping[Key, object]) -> Iterable[Key]:
    if before is after:
        return ()
    new = [key for key, value in after.items() if before.get(key) is not value]
    return [*new, *(before.keys() - after.keys())]
