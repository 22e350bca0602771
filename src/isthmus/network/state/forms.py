"""Forms of what daemons write to etcd: none writes what another one cannot read.

A daemon refuses what it does not know (isthmus.network.state.snapshot), so one of before would be held up by the first
key or field that is new. Each daemon therefore publishes the newest form that it reads, which is all of those before
too. A value of a newer form is written when every member reads that; until then what needs it waits, or is refused
with the members' names.

    /isthmus/<cluster>/heartbeats/forms/<node>   stays; a node without one reads form 1

1   nodes, users, jobs, leases, attachments, ranges
2   gateways: a node's `gateway`, who leads out, who is heard of, open ports

What a next form adds is one more line here, and one in `of`; a driver says itself since when its jobs can be read.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from itertools import chain

from isthmus.clients.etcd.store import DeniedError, Etcd, Put
from isthmus.model.network import Active, Driver, Exposure, Heard, Job, Node, State
from isthmus.network.drivers.registry import definition
from isthmus.network.state.codec import Value

# The newest form, which this daemon reads, and writes where it may.
FORM = 2
FIRST = 1

_log = logging.getLogger(__name__)


def of(value: Value) -> int:
    """Return the form of a value."""
    match value:
        case Node(gateway=True) | Active() | Heard() | Exposure():
            return 2
        case Job(driver=driver) if driver is not Driver.NONE:
            return definition(driver).form
        case _:
            return FIRST


def there(state: State) -> int:
    """Return the newest form among what etcd has: who cannot read that is held up already."""
    values: chain[Value] = chain(state.nodes.values(), state.jobs.values(), state.exposed.values())
    return max(map(of, values), default=FIRST)


class Forms:
    """What the members of one cluster read; every method raises EtcdError."""

    def __init__(self, etcd: Etcd, cluster: str) -> None:
        self._etcd = etcd
        self._prefix = f"/isthmus/{cluster}/heartbeats/forms/"
        self._able: frozenset[str] = frozenset()

    def publish(self, node: str) -> None:
        """Write what this daemon reads, for its node."""
        try:
            if self._read().get(node) != FORM:
                self._etcd.transact({}, [Put(self._prefix + node, str(FORM))])
        except DeniedError as error:
            _log.warning("others do not hear what this node can read: %s; run playbooks/network.yml", error)

    def withdraw(self, node: str) -> None:
        """Remove a node's; where nobody may write them there are none."""
        self._able -= {node}
        try:
            self._etcd.delete(self._prefix + node)
        except DeniedError as error:
            _log.warning("forms of %s: %s", node, error)

    def older(self, members: Iterable[str], form: int) -> list[str]:
        """Return the members that cannot read a form; those that read the newest one are not asked for again."""
        unknown = set(members) - self._able
        if form <= FIRST or not unknown:
            return []
        try:
            found = self._read()
        except DeniedError:
            found = {}
        self._able |= {node for node, newest in found.items() if newest >= FORM}
        return sorted(node for node in unknown if found.get(node, FIRST) < form)

    def _read(self) -> dict[str, int]:
        entries = self._etcd.range(self._prefix).entries.values()
        return {entry.key.removeprefix(self._prefix): _number(entry.value) for entry in entries}


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else FIRST
