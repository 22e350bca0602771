"""The actions that slurmctld calls: resume nodes, suspend them, fail those that did not join; and reconciliation.

One run at a time observes and changes the cloud, under the record's lock; none waits under the lock for servers to
boot, so that the next call of slurmctld is not delayed. A node that cannot be started is set DOWN in Slurm with the
reason at once: its job is requeued elsewhere, and an administrator sees why.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

from isthmus.clients.openstack.change import Changes
from isthmus.clients.openstack.connection import CloudError, Connection, connect
from isthmus.clients.openstack.look import look_at_servers
from isthmus.clients.slurm.nodes import NodeState
from isthmus.cloud import ownership
from isthmus.cloud.desired import cloud_server
from isthmus.cloud.power.decide import PREFIX, Start, is_given_up, is_there, repairs, start
from isthmus.cloud.power.settings import PowerSettings
from isthmus.cloud.recorded import Recorded
from isthmus.cloud.userdata import Join
from isthmus.cloud.work import Work
from isthmus.model.cloud import Found, Kind, Step, Verb

# A short outage of the cloud takes no node out of service.
_TRIES, _PAUSE_S = 3, 5.0
T = TypeVar("T")


class Slurm(Protocol):
    """The requests to slurmctld; implemented by isthmus.clients.slurm.nodes."""

    def node_states(self, names: Iterable[str]) -> dict[str, NodeState]:
        """Return name -> state."""

    def update_nodes(self, names: Collection[str], **changes: str) -> None:
        """Change nodes."""


class Tokens(Protocol):
    """Tokens that let nodes join."""

    def make(self, name: str, valid_s: float) -> str:
        """Create a single-use token for this node."""

    def starting(self) -> Collection[str]:
        """Return nodes with a valid token."""

    def drop(self, names: Collection[str]) -> None:
        """Revoke the tokens of these nodes."""


@dataclass(frozen=True)
class Outside:
    """Collaborators and pauses.

    Attributes:
        slurm: slurmctld.
        tokens: of isthmus-joind.
        say: called with a line for the log.
        state: folder of the record.
        pause_s: between two tries to reach the cloud.
        lock_s: how long to wait for the record's lock: as long as another call's requests take.
    """

    slurm: Slurm
    tokens: Tokens
    say: Callable[[str], None]
    state: Path
    pause_s: float = _PAUSE_S
    lock_s: float = 120.0


@dataclass(frozen=True)
class _Look:
    """The cluster's servers and ports by node, and the object that changes them."""

    servers: Mapping[str, Found]
    ports: Mapping[str, Found]
    work: Work


class Power:
    """The cloud nodes of one cluster.

    Args:
        settings: of the controller.
        outside: whom it works with.
    """

    def __init__(self, settings: PowerSettings, outside: Outside) -> None:
        self._settings, self._outside = settings, outside

    def resume(self, names: Sequence[str]) -> bool:
        """Start nodes; return whether all servers run; the others are set DOWN with the reason.

        Raises:
            CloudError: the cloud does not answer; nothing was created.
            InputError: another run holds the lock.
        """
        self._refuse_strangers(names)
        with self._looking() as look:
            failed, made = self._start(names, look)
        node = self._settings.cluster.name
        faults, waiting = look.work.outcome([node(name) for name in made])
        failed |= {name: faults[node(name)] for name in made if node(name) in faults}
        late = f"its server does not run after {self._settings.cluster.timeout_s} s"
        failed |= {name: late for name in made if node(name) in waiting}
        self._give_up(failed)
        return not failed

    def suspend(self, names: Sequence[str]) -> bool:
        """Delete the servers of nodes; return whether the cloud accepted it."""
        self._refuse_strangers(names)
        with self._looking() as look:
            return self._stop(dict.fromkeys(names, "Slurm powers it down"), look)

    def fail(self, names: Sequence[str]) -> bool:
        """Fail nodes that did not join in time."""
        self._give_up(dict.fromkeys(names, f"it did not join within {self._settings.resume_timeout_s} s"))
        return False

    def reconcile(self) -> bool:
        """Repair what a killed run, or a manual change, left; return whether nothing differed."""
        nodes = self._settings.cluster.cloud_nodes
        with self._looking() as look:
            # Under the lock: the view of Slurm must not be older than that of the cloud.
            states = self._outside.slurm.node_states(nodes)
            given = {name: (state.flags, state.reason) for name, state in states.items()}
            found = repairs(given, look.servers)
            failed, _ = self._start(found.start, look)
            stopped = self._stop(found.stop, look)
        self.down(failed | found.down)
        return stopped and not (failed or found.down)

    def down(self, reasons: Mapping[str, str]) -> None:
        """Take nodes out of service, except those that have such a reason already."""
        states = self._outside.slurm.node_states(reasons) if reasons else {}
        for name, why in sorted(reasons.items()):
            flags, slurm = states[name].flags, self._outside.slurm
            self._outside.say(f"{name} is down: {why}")
            if not is_given_up(flags, states[name].reason):
                slurm.update_nodes([name], State="DOWN", Reason=f"{PREFIX}{_line(why)}")
            # Slurm does so itself for a node that was starting. After that, RESUME makes it startable again.
            if is_there(flags):
                slurm.update_nodes([name], State="POWER_DOWN_FORCE")

    def _start(self, names: Sequence[str], look: _Look) -> tuple[dict[str, str], list[str]]:
        """Create servers; return the errors, and the servers to wait for."""
        settings, outside = self._settings.cluster, self._outside
        chosen = start(names, look.servers, outside.tokens.starting())
        failed = {name: "it has no port; run playbooks/create.yml" for name in names if name not in look.ports}
        ids = {(Kind.PORT, one.name): one.id for one in look.ports.values()}
        steps = []
        for name, how in chosen.items():
            if how is Start.KEEP or name in failed:
                continue
            outside.tokens.drop([name])
            token = outside.tokens.make(name, self._settings.resume_timeout_s)
            wanted = cloud_server(settings, name, Join(self._settings.server, settings.public_key, token))
            verb = Verb.CREATE if how is Start.CREATE else Verb.REPLACE
            steps.append(Step(verb, wanted, look.servers.get(name)))
        if steps:
            outside.say(", ".join(map(str, steps)))
        refused = look.work.start(steps, ids)
        failed |= {name: refused[settings.name(name)] for name in names if settings.name(name) in refused}
        self._address(look, [name for name in names if name not in failed])
        return failed, [name for name in names if name not in failed]

    def _address(self, look: _Look, names: Iterable[str]) -> None:
        # Slurm drops a cloud node's address when it powers the node down.
        for name in names:
            address = str(look.ports[name].settings["address"])
            self._outside.slurm.update_nodes([name], NodeAddr=address, NodeHostName=name)

    def _stop(self, reasons: Mapping[str, str], look: _Look) -> bool:
        """Delete servers; report which the cloud refused, which the next reconciliation repeats."""
        outside = self._outside
        outside.tokens.drop(reasons)
        there = {name: look.servers[name] for name in reasons if name in look.servers}
        for name in there:
            outside.say(f"delete server {there[name].name}: {reasons[name]}")
        refused = look.work.stop([*there.values()])
        for why in refused.values():
            outside.say(f"{why}; it is tried again")
        return not refused

    def _give_up(self, failed: Mapping[str, str]) -> None:
        """Delete the servers of nodes, and take the nodes out of service even if that fails."""
        if not failed:
            return
        reasons = dict(failed)
        try:
            with self._looking() as look:
                self._stop(reasons, look)
        except CloudError as error:
            reasons = {name: f"{why}; its server is not deleted yet: {error}" for name, why in reasons.items()}
        self.down(reasons)

    @contextmanager
    def _looking(self) -> Iterator[_Look]:
        settings, outside = self._settings, self._outside
        mark = ownership.mark(settings.cluster.cluster, settings.identity)
        with Recorded(outside.state / "record.json", dry=False, wait_s=outside.lock_s) as recorded:
            recorded.save(recorded.load() or ownership.Record(settings.identity))
            connection = self._patiently(lambda: connect(settings.cloud, settings.region))
            found = self._patiently(lambda: self._found(connection, mark))
            work = Work(Changes(connection, mark), recorded, outside.say, settings.cluster.timeout_s)
            yield _Look(found[Kind.SERVER], found[Kind.PORT], work)

    def _found(self, connection: Connection, mark: str) -> dict[Kind, dict[str, Found]]:
        nodes = {self._settings.cluster.name(node): node for node in self._settings.cluster.cloud_nodes}
        found: dict[Kind, dict[str, Found]] = {Kind.SERVER: {}, Kind.PORT: {}}
        for one in look_at_servers(connection):
            if one.mark == mark and one.name in nodes:
                found[one.kind][nodes[one.name]] = one
        return found

    def _patiently(self, call: Callable[[], T]) -> T:
        for left in reversed(range(_TRIES)):
            try:
                return call()
            except CloudError as error:
                if not left:
                    raise
                self._outside.say(f"{error} (tried again in {self._outside.pause_s:g} s)")
                time.sleep(self._outside.pause_s)
        raise AssertionError("the last try returns or raises")

    def _refuse_strangers(self, names: Iterable[str]) -> None:
        strange = [name for name in names if name not in self._settings.cluster.cloud_nodes]
        if strange:
            raise CloudError(f"{', '.join(strange)}: no node of the cloud's", "run playbooks/publish.yml")


def _line(text: str) -> str:
    # scontrol takes a single word; longer reasons make sinfo's output unreadable.
    return " ".join(text.split())[:200]
