"""Which gateway leads out: a key of etcd's, among the pod networks', so that all nodes learn of a change at once.

It stays until another gateway writes it. Each gateway is heard of by a key of its own, which goes with a lease that its
daemon keeps alive. When etcd has not heard of the one that leads for TTL_S, the first of the others to write the key
leads out. A gateway that returns takes nothing back: that would cut connections for no gain.

While etcd is away nobody takes over, nodes hear of nothing, and the gateway that leads out goes on. An etcd that is
being stopped may still end leases when it hears of nobody any more: without an etcd that can be written, that changes
nothing. After that all are heard of again within GRACE_S. If a gateway alone does not reach etcd another one takes
over; it lets go of the addresses as soon as it sees that they are elsewhere. A gateway that cannot do its work, because
its packet filter is not as wanted, or a link of the outside addresses has no carrier, is not heard of.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress

from isthmus.clients.etcd.store import Etcd, EtcdError, Put
from isthmus.clients.netlink.wire import NetlinkError
from isthmus.model.network import Active, Driver, Heard, Node, State
from isthmus.network.gateways.outside import OutsideAddresses
from isthmus.network.state.codec import decode, encode, key_of
from isthmus.network.state.ipam import AllocationError
from isthmus.network.state.keys import GatewayKey, HeardKey, Keys, StoredError
from isthmus.network.state.store import OlderMembersError, Store, StoreError
from isthmus.network.state.view import View

# Of the lease. etcd looks for ended ones every half second, and others wait for GRACE_S then: less than 5 s in all.
TTL_S = 3
GRACE_S = 0.5
# Between two beats, and when something is amiss; how long a call may take, so that the next one comes in time.
BEAT_S, RETRY_S, CALL_S = 0.75, 0.25, 1.0
# While daemons of before are among the nodes.
OLDER_S = 5.0
# Of calls, when no member of etcd answers.
PAUSES_S = (0.1, 0.2)

_log = logging.getLogger(__name__)


class Election:
    """One gateway's part in the election of the active one; for one thread.

    Attributes:
        is_leader: whether it is that, by etcd's last word.
    """

    def __init__(
        self,
        etcd: Etcd,
        keys: Keys,
        node: str,
        ttl_s: int = TTL_S,
        grace_s: float = GRACE_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._etcd, self._keys, self._node = etcd, keys, node
        self._ttl_s, self._grace_s, self._clock = ttl_s, grace_s, clock
        self._lease = ""
        # Who leads and is not heard of, and since when.
        self._missing, self._missing_s = "", 0.0
        self.is_leader = False

    def campaign(self, gateways: Collection[str]) -> None:
        """Be heard of, and become the active gateway if there is none.

        Args:
            gateways: all of them, as far as this node knows.

        Raises:
            EtcdError: etcd did not do it; call again.
            StoredError: what etcd has is nothing that this version wrote.
        """
        if not self._lease or not self._etcd.keep_alive(self._lease):
            self._lease = self._etcd.grant(self._ttl_s)
            heard = Heard(self._node)
            self._etcd.transact({}, [Put(self._keys.path(key_of(heard)), encode(heard), self._lease)])
        path = self._keys.path(GatewayKey())
        entry = self._etcd.get(path)
        leading = decode(self._keys, path, entry.value) if entry else None
        name = leading.node if isinstance(leading, Active) else ""
        self.is_leader = name == self._node
        if self._is_free(name, gateways):
            unchanged = {path: entry.revision if entry else 0}
            if name in gateways:
                unchanged[self._keys.path(HeardKey(name))] = 0
            put = Put(path, encode(Active(self._node)))
            self.is_leader = self._etcd.transact(unchanged, [put]).succeeded

    def resign(self) -> None:
        """Be heard of no longer, so that another one leads out, if there is one."""
        lease, self._lease = self._lease, ""
        if lease:
            with suppress(EtcdError):
                self._etcd.revoke(lease)

    def _is_free(self, leading: str, gateways: Collection[str]) -> bool:
        """Return whether nobody leads out, or one who has not been heard of for long enough."""
        if leading != self._node and leading not in gateways:
            return True
        if leading == self._node or self._etcd.get(self._keys.path(HeardKey(leading))):
            self._missing = ""
            return False
        if leading != self._missing:
            self._missing, self._missing_s = leading, self._clock()
        return self._clock() - self._missing_s >= self._grace_s


def lacking(state: State, node: str) -> list[int]:
    """Return the users with jobs who have no leg on a gateway: it became one after their jobs began."""
    uids = {job.uid for job in state.jobs.values() if job.driver == Driver.PRIVATE}
    return sorted(uid for uid in uids if uid in state.users and node not in state.users[uid].legs)


def is_news(seen: State) -> Callable[[State], bool]:
    """Return whether a state has another gateway that leads, or others that are heard of."""
    return lambda state: (state.gateway, state.heard) != (seen.gateway, seen.heard)


class Gateway:
    """A gateway's loops.

    Args:
        member: this node.
        election: of the active one.
        store: etcd.
        view: the newest snapshot.
        outside: the outside addresses.
        is_able: whether the node is as wanted.
    """

    def __init__(
        self,
        member: Node,
        election: Election,
        store: Store,
        view: View,
        outside: OutsideAddresses,
        is_able: Callable[[], bool],
    ) -> None:
        self._member, self._election, self._store, self._view = member, election, store, view
        self._outside, self._is_able = outside, is_able
        self._problem = ""
        self._heard_s = time.monotonic()

    def loops(self) -> Mapping[str, Callable[[], None]]:
        """Return what never returns, by the names of threads."""
        return {"lead": self._lead, "gateway legs": self._give_legs}

    def _lead(self) -> None:
        while True:
            seen = self._view.snapshot.state
            pause_s = self.turn(seen)
            self._view.wait(is_news(seen), pause_s)

    def turn(self, state: State) -> float:
        """Beat once; return when to do so again."""
        try:
            # While others could not read that it is one, it is none; see isthmus.network.state.forms.
            if self._member.name not in state.gateways:
                self._store.announce(self._member)
            problem = self._beat(state)
        except OlderMembersError as error:
            self._warn(f"this node is no gateway yet: {error}")
            return OLDER_S
        except (EtcdError, StoredError, StoreError) as error:
            self._warn(f"etcd has not heard of this gateway now: {error}")
            self._look_for_follower()
            return RETRY_S
        self._heard_s = time.monotonic()
        self._warn(problem)
        return RETRY_S if state.gateway not in state.heard else BEAT_S

    def _beat(self, state: State) -> str:
        """Return why this gateway does not lead out."""
        problem = ""
        try:
            if not self._is_able():
                problem = "the packet filter is not as wanted"
            elif not self._outside.is_reached():
                problem = "a link of network_outside_addresses has no carrier"
            else:
                self._outside.announce()
        except (NetlinkError, OSError) as error:
            problem = f"the outside addresses: {error}"
        if problem:
            self._election.resign()
            return f"this gateway leaves it to others to lead out: {problem}"
        self._election.campaign(state.gateways)
        try:
            # Not by what the watch has said so far: it may be behind.
            if self._election.is_leader:
                self._outside.resume()
        except NetlinkError as error:
            return f"the outside addresses: {error}"
        return ""

    def _look_for_follower(self) -> None:
        if time.monotonic() - self._heard_s < TTL_S:
            return
        try:
            if self._outside.give_up():
                self._warn("another gateway has the outside addresses, and this one does not reach etcd")
        except (NetlinkError, OSError) as error:
            self._warn(f"the outside addresses: {error}")

    def _give_legs(self) -> None:
        turn = 0
        while True:
            try:
                for uid in lacking(self._view.snapshot.state, self._member.name):
                    self._store.lead_out(uid, self._member.name, self._view.snapshot)
            except (EtcdError, StoredError, StoreError, AllocationError) as error:
                _log.warning("pods of some users have no way out yet: %s", error)
            turn = self._view.next_turn(turn, BEAT_S * 4)

    def _warn(self, problem: str) -> None:
        if problem and problem != self._problem:
            _log.warning("%s", problem)
        self._problem = problem
