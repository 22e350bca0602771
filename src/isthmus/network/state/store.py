"""The state of pod networks in etcd: loaded once, watched, and changed by compare-and-swap transactions.

A change is worked out from a snapshot and written only if the documents it depends on are still those of the snapshot;
else somebody was faster, and the change is worked out again from what there is now. What a user has depends on their
jobs and leases, so a transaction that writes one of these writes `users/<uid>` too; one that takes a VNI or a block
rewrites `ranges`. A snapshot may be old: then a race is lost, and nothing wrong is written.

An answer of etcd may be lost after the change was made. Worked out again, the change is then already there: asking
again is always right.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from ipaddress import IPv4Address
from typing import Generic, TypeVar

from isthmus.clients.etcd.store import Changes, Delete, Etcd, Event, Outcome, Put, Space
from isthmus.model.network import Attachment, Exposure, Job, Lease, Node, Ranges
from isthmus.network.bounds import LOGIN_FIRST
from isthmus.network.drivers.registry import definition
from isthmus.network.encryption.records import Records
from isthmus.network.gateways import exposing
from isthmus.network.state import forms, ipam
from isthmus.network.state import snapshot as snapshots
from isthmus.network.state.codec import Guard, Value, encode, key_of
from isthmus.network.state.feed import Feed
from isthmus.network.state.forms import Forms
from isthmus.network.state.heartbeats import Heartbeats, ties
from isthmus.network.state.keys import (
    AttachmentKey,
    ExposedKey,
    JobKey,
    Key,
    Keys,
    LeaseKey,
    NodeKey,
    RangesKey,
    UserKey,
)
from isthmus.network.state.snapshot import Snapshot
from isthmus.network.state.turns import Turn, Turns
from isthmus.support.backoff import Backoff

Result = TypeVar("Result")

# How long a change is tried again; a race is lost in milliseconds, so this is many of them.
PATIENCE_S = 10.0
# Of those that change the same user in this process, before that. Together less than a job waits for its network.
LINE_S = 15.0
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.005, 0.2
# The watch delivers the winning change in milliseconds; else everything is read.
FEED_S = 0.25
# A database that is so full is reported before it refuses writes.
FULL_SHARE = 0.8
# Jobs released by one transaction, two steps each; etcd takes 128.
BATCH = 60


class StoreError(Exception):
    """Nothing was written; the message says why, and the remedy."""


class RangesDifferError(StoreError):
    """The daemon's settings and those that addresses were taken by are not the same."""


class NodeBusyError(StoreError):
    """Jobs on the node have addresses."""


class EndedError(StoreError):
    """The job is not in etcd any more."""


class ContendedError(StoreError):
    """Others were faster again and again."""


class HeardError(StoreError):
    """The node that was thought to be gone has been heard of."""


class OlderMembersError(StoreError):
    """Daemons of before could not read it."""


@dataclass(frozen=True, slots=True)
class Change(Generic[Result]):
    """What is to be written, if the compared keys are as they were in the snapshot.

    Attributes:
        result: what the caller gets.
        compared: keys of everything the change was worked out from.
        values: documents to write.
        gone: keys to delete.
        swept: jobs whose attachments are deleted.
        absent: a key elsewhere that must not be there, as etcd has it.
    """

    result: Result
    compared: tuple[Key, ...]
    values: tuple[Value, ...] = ()
    gone: tuple[Key, ...] = ()
    swept: tuple[int, ...] = ()
    absent: str = ""


class Store:
    """One cluster's pod networks; may be used by several threads.

    Every method raises EtcdError, StoredError or StoreError in one of its kinds, those that give addresses
    AllocationError as well. `known` is a snapshot that saves reading everything; one of a feed is best.
    """

    def __init__(
        self,
        etcd: Etcd,
        keys: Keys,
        ranges: Ranges,
        *,
        patience_s: float = PATIENCE_S,
        line_s: float = LINE_S,
        feed_s: float = FEED_S,
    ) -> None:
        self._etcd = etcd
        self._keys = keys
        self._ranges = ranges
        self._patience_s, self._line_s, self._feed_s = patience_s, line_s, feed_s
        self._feed: Feed | None = None
        self._turns = Turns()
        self._space = ""
        self.heartbeats = Heartbeats(etcd, keys.cluster)
        self.encryption = Records(etcd, keys.cluster)
        self.forms = Forms(etcd, keys.cluster)

    def load(self) -> Snapshot:
        """Read everything, at one revision."""
        at = snapshots.load(self._keys, self._etcd.range(self._keys.prefix))
        self._check(at)
        return at

    def feed(self, at: Snapshot, log: Callable[[str], None] = lambda text: None) -> Feed:
        """Return what comes after a snapshot; `log` takes a line whenever etcd has to be connected to again.

        While somebody iterates over it, lost races are known from there too.
        """
        self._feed = Feed(self._etcd, self._keys, at, self.load, log)
        return self._feed

    @property
    def problem(self) -> str:
        """Why the feed is held up, or etcd short of space; empty when neither is so."""
        return "; ".join(filter(None, (self._feed.problem if self._feed else "", self._space)))

    def look_at_space(self) -> None:
        """Check whether etcd has room for writes; the result is in `problem`."""
        self._space = space_problem(self._etcd.space())

    def take(self, request: ipam.Request, known: Snapshot | None = None) -> ipam.Taken:
        """Give a job what its network needs on all its nodes; a job that has it keeps it."""

        def work(at: Snapshot) -> Change[ipam.Taken]:
            taken = definition(request.driver).allocate(at.state, self._ranges, request)
            values = (taken.user, taken.job) if taken.new else ()
            swept = _attached(at.state.jobs.get(request.job)) if taken.new else ()
            change = Change(taken, (UserKey(request.uid), JobKey(request.job)), values, swept=swept)
            return self._guarded(at, _former(at, request, change), grew=taken.grew)

        return self._commit(work, known)

    def lease(self, uid: int, user: str, node: str, since_s: int, known: Snapshot | None = None) -> IPv4Address:
        """Give a user a leg on a node without a pod there; return its address."""

        def work(at: Snapshot) -> Change[IPv4Address]:
            given = ipam.lease(at.state, self._ranges, uid, user, node)
            lacking = [] if (uid, node) in at.state.leases else [Lease(uid, node, since_s)]
            values: tuple[Value, ...] = (given.user, *lacking) if given.new or lacking else ()
            change = Change(given.address, (UserKey(uid), LeaseKey(uid, node)), values)
            return self._guarded(at, change, grew=given.grew)

        return self._commit(work, known)

    def drop_lease(self, uid: int, node: str, known: Snapshot | None = None, absent: str = "") -> bool:
        """End a lease; return whether there was one.

        Args:
            uid: whose.
            node: where.
            known: a snapshot.
            absent: a key of etcd; while it is there nothing is changed, and HeardError raised.
        """

        def work(at: Snapshot) -> Change[bool]:
            key = LeaseKey(uid, node)
            if (uid, node) not in at.state.leases:
                return Change(False, (key,))
            user = ipam.release(at.state, uid, dropped=[node])
            return Change(True, (UserKey(uid), key), (user,) if user else (), (key,), absent=absent)

        return self._commit(work, known)

    def reserve(self, uid: int, user: str, name: str, known: Snapshot | None = None) -> IPv4Address:
        """Keep an address for a user's service of that name; return it."""

        def work(at: Snapshot) -> Change[IPv4Address]:
            given = ipam.reserve(at.state, self._ranges, uid, user, name)
            change = Change(given.address, (UserKey(uid),), (given.user,) if given.new else ())
            return self._guarded(at, change, grew=given.grew)

        return self._commit(work, known)

    def unreserve(self, uid: int, name: str, known: Snapshot | None = None) -> bool:
        """Give a reservation back, and close its ports to the outside; return whether there was one."""

        def work(at: Snapshot) -> Change[bool]:
            user = at.state.users.get(uid)
            if user is None or name not in user.reserved:
                return Change(False, (UserKey(uid),))
            # Who opens a port writes the user, too: none is overlooked.
            ports = tuple(ExposedKey(*each.door) for each in exposing.of_reservation(at.state, uid, name))
            return Change(True, (UserKey(uid), *ports), (ipam.unreserve(user, name),), ports)

        return self._commit(work, known)

    def expose(self, wanted: Exposure, user: str, known: Snapshot | None = None) -> bool:
        """Open a port to the outside; return whether it was closed.

        Raises:
            AllocationError: it is another's, or leads to nothing.
        """

        def work(at: Snapshot) -> Change[bool]:
            key = ExposedKey(*wanted.door)
            new = exposing.is_new(at.state, wanted, user)
            values: tuple[Value, ...] = (at.state.users[wanted.uid], wanted) if new else ()
            return Change(new, (UserKey(wanted.uid), key), values)

        return self._commit(work, known)

    def withdraw(self, opened: Exposure, known: Snapshot | None = None) -> bool:
        """Close a port to the outside; return whether it was open, for this very user and reservation."""

        def work(at: Snapshot) -> Change[bool]:
            key = ExposedKey(*opened.door)
            there = at.state.exposed.get(opened.door) == opened
            return Change(there, (key,), gone=(key,) if there else ())

        return self._commit(work, known)

    def lead_out(self, uid: int, node: str, known: Snapshot | None = None) -> bool:
        """Give a user with jobs a leg on a gateway; return whether there was need."""

        def work(at: Snapshot) -> Change[bool]:
            given = ipam.lead_out(at.state, self._ranges, uid, node)
            change = Change(given is not None, (UserKey(uid),), (given.user,) if given else ())
            return self._guarded(at, change, grew=given is not None and given.grew)

        return self._commit(work, known)

    def attach(self, attachment: Attachment, known: Snapshot | None = None) -> bool:
        """Publish the address of a job's pod; return whether it changed.

        Raises:
            EndedError: there is no such job on that node, or etcd gives its addresses.
        """

        def work(at: Snapshot) -> Change[bool]:
            number, node = attachment.job, attachment.node
            job = at.state.jobs.get(number)
            if not job or not _attached(job) or node not in job.nodes:
                raise EndedError(f"job {number} is not in etcd, or not on {node}; submit it again")
            news = at.state.attachments.get((number, node)) != attachment
            return Change(news, (JobKey(number), AttachmentKey(number, node)), (attachment,) if news else ())

        return self._commit(work, known)

    def release(self, ended: Mapping[int, int], known: Snapshot | None = None, absent: str = "") -> frozenset[int]:
        """Delete jobs, and the legs that nothing needs any more; return those that were deleted.

        Args:
            ended: job id -> revision of the entry that ended; one written later is another stay of the job, and lives.
            known: a snapshot.
            absent: a key of etcd; while it is there nothing is changed, and HeardError raised.
        """
        at = known or self.load()
        released: set[int] = set()
        for uid in sorted({job.uid for job in at.state.jobs.values() if job.id in ended}):
            jobs = sorted(job.id for job in at.state.jobs.values() if job.id in ended and job.uid == uid)
            for begin in range(0, len(jobs), BATCH):
                # After a user's first batch the snapshot is old.
                some = {job: ended[job] for job in jobs[begin : begin + BATCH]}
                released |= self._release(uid, some, None if begin else at, absent)
        return frozenset(released)

    def rename(self, names: Mapping[int, str], known: Snapshot | None = None) -> None:
        """Write the names of jobs, as far as they are still there."""
        for begin in range(0, len(names), BATCH):
            some = dict(list(names.items())[begin : begin + BATCH])

            def work(at: Snapshot, some: Mapping[int, str] = some) -> Change[None]:
                there = [replace(at.state.jobs[job], name=name) for job, name in some.items() if job in at.state.jobs]
                return Change(None, tuple(map(JobKey, some)), tuple(there))

            self._commit(work, known)

    def announce(self, node: Node, known: Snapshot | None = None) -> bool:
        """Make a node known to the others, and what its daemon reads; return whether something changed.

        Raises:
            OlderMembersError: it is a gateway, and others would not understand that.
        """
        self.forms.publish(node.name)

        def work(at: Snapshot) -> Change[bool]:
            changed = at.state.nodes.get(node.name) != node
            return Change(changed, (NodeKey(node.name),), (node,) if changed else ())

        return self._commit(work, known)

    def forget(self, node: str, known: Snapshot | None = None) -> bool:
        """Take a node out of the pod networks, with the leases and login pods there; return whether it was known."""

        def work(at: Snapshot) -> Change[bool]:
            there = node in at.state.nodes
            jobs = sorted(job.id for job in at.state.jobs.values() if node in job.nodes and job.id < LOGIN_FIRST)
            if jobs:
                named = ", ".join(map(str, jobs[:5])) + (" ..." if len(jobs) > 5 else "")
                raise NodeBusyError(f"jobs on {node} have addresses: {named}; forget it when they have ended")
            return Change(there, (NodeKey(node),), gone=(NodeKey(node),) if there else ())

        forgotten = self._commit(work, known)
        self._end_ties(node)
        self.heartbeats.withdraw(node)
        self.encryption.withdraw(node)
        self.forms.withdraw(node)
        return forgotten

    def end_silent(self, node: str) -> int:
        """End the leases and login pods of a node that is not heard of any more; return how many.

        Raises:
            HeardError: it is heard of again; what is not ended yet stays.
        """
        return self._end_ties(node, self.heartbeats.alive(node))

    def _end_ties(self, node: str, absent: str = "") -> int:
        """End what only the node's own daemon ends otherwise."""
        left = self.load()
        pods, leased = ties(left.state, node)
        self.release({number: left.jobs()[number] for number in pods}, left, absent)
        for uid in leased:
            self.drop_lease(uid, node, left, absent)
        return len(pods) + len(leased)

    def _release(self, uid: int, ended: Mapping[int, int], known: Snapshot | None, absent: str = "") -> frozenset[int]:
        def work(at: Snapshot) -> Change[frozenset[int]]:
            still = [job for job, revision in ended.items() if at.revision_of(JobKey(job)) == revision]
            user = ipam.release(at.state, uid, ended=still)
            gone = tuple(map(JobKey, still))
            swept = tuple(job for job in still if _attached(at.state.jobs[job]))
            values = (user,) if user and still else ()
            return Change(frozenset(still), (UserKey(uid), *gone), values, gone, swept, absent)

        return self._commit(work, known)

    def _commit(self, work: Callable[[Snapshot], Change[Result]], known: Snapshot | None) -> Result:
        at = known or self.load()
        self._check(at)
        users = [key for key in work(at).compared if isinstance(key, UserKey)]
        if not users:
            return self._race(work, at, Turn())
        with self._turns.of(users[0], self._line_s) as turn:
            # One that waited in vain races all the same.
            left = turn.at
            return self._race(work, left if left and left.state.revision > at.state.revision else at, turn)

    def _race(self, work: Callable[[Snapshot], Change[Result]], at: Snapshot, turn: Turn) -> Result:
        deadline = time.monotonic() + self._patience_s
        # The loser has met the winner already: the pause is all jitter.
        backoff = Backoff(FIRST_PAUSE_S, LONGEST_PAUSE_S, spread=1.0)
        while True:
            self._check(at)
            change = work(at)
            self._check_form(at, change)
            outcome = self._write(at, change)
            if outcome.succeeded:
                turn.at = self._after(at, change, outcome.revision)
                return change.result
            if change.absent in outcome.found:
                raise HeardError(f"etcd has {change.absent} again; nothing more is ended")
            if time.monotonic() >= deadline:
                raise ContendedError(f"others changed the same in etcd for {self._patience_s:g} s; try again")
            time.sleep(backoff.next_s())
            at = self._newer(change.compared, outcome)

    def _after(self, at: Snapshot, change: Change[Result], revision: int) -> Snapshot:
        """Return a snapshot with a change that was carried out; others' changes since may lack, which a race shows."""
        values = [Event(self._keys.path(key_of(each)), encode(each), revision) for each in change.values]
        swept = [AttachmentKey(*each) for each in at.state.attachments if each[0] in change.swept]
        gone = [Event(self._keys.path(key), None, revision) for key in (*change.gone, *swept)]
        return snapshots.follow(self._keys, at, Changes(revision, (*values, *gone)))

    def _newer(self, compared: Iterable[Key], outcome: Outcome) -> Snapshot:
        """Return a snapshot that has seen what a lost race was lost to."""
        there = {key: outcome.found.get(self._keys.path(key)) for key in compared}

        def has_seen(at: Snapshot) -> bool:
            if at.state.revision >= outcome.revision:
                return True
            return all(
                at.revision_of(key) >= entry.revision if entry else key not in at.revisions
                for key, entry in there.items()
            )

        return (self._feed.wait(has_seen, self._feed_s) if self._feed else None) or self.load()

    def _write(self, at: Snapshot, change: Change[Result]) -> Outcome:
        """Carry a change out; also one that writes nothing is compared: an old snapshot must not decide alone."""
        unchanged = {self._keys.path(key): at.revision_of(key) for key in change.compared}
        unchanged |= {change.absent: 0} if change.absent else {}
        puts = [Put(self._keys.path(key_of(value)), encode(value)) for value in change.values]
        deletions = [Delete(self._keys.path(key)) for key in change.gone]
        swept = [Delete(self._keys.attachments(job), below=True) for job in change.swept]
        return self._etcd.transact(unchanged, [*puts, *deletions, *swept])

    def _guarded(self, at: Snapshot, change: Change[Result], *, grew: bool) -> Change[Result]:
        if not grew:
            return change
        guard = Guard(self._ranges, at.guard.serial + 1 if at.guard else 1)
        return replace(change, compared=(*change.compared, RangesKey()), values=(*change.values, guard))

    def _check_form(self, at: Snapshot, change: Change[Result]) -> None:
        newest = max(map(forms.of, change.values), default=forms.FIRST)
        older = self.forms.older(at.state.nodes, newest)
        if older and newest > forms.there(at.state):
            named = ", ".join(older[:5]) + (" ..." if len(older) > 5 else "")
            raise OlderMembersError(
                f"daemons of an earlier Isthmus could not read this: {named}; run playbooks/network.yml for them, or"
                " playbooks/remove_nodes.yml for those that are gone"
            )

    def _check(self, at: Snapshot) -> None:
        if at.guard and at.guard.ranges != self._ranges and at.state.users:
            raise RangesDifferError(
                f"addresses were taken by other settings ({_shown(at.guard.ranges)}) than this daemon's"
                f" ({_shown(self._ranges)}); give all nodes the former ones, or give this cluster an id of its own"
            )


def space_problem(space: Space) -> str:
    """Return what an admin must know of etcd's space, and the remedy; empty where there is enough."""
    remedy = (
        "on a member: isthmus-etcdctl compact REVISION (of endpoint status), isthmus-etcdctl defrag --cluster,"
        " isthmus-etcdctl alarm disarm; or raise etcd_quota_mib"
    )
    if space.is_full:
        return f"etcd's space is used up (NOSPACE): no job gets a pod network; {remedy}"
    if space.quota and space.used > FULL_SHARE * space.quota:
        return f"etcd has used {space.used / space.quota:.0%} of its quota; look who writes; {remedy}"
    return ""


def _attached(job: Job | None) -> tuple[int, ...]:
    """Return a job whose nodes give the addresses, nothing for another."""
    return (job.id,) if job is not None and not job.addresses else ()


def _former(at: Snapshot, request: ipam.Request, change: Change[Result]) -> Change[Result]:
    """Let a former user of the job's id, whose job is replaced, lose the legs they had for it."""
    job = at.state.jobs.get(request.job)
    if job is None or job.uid == request.uid:
        return change
    user = ipam.release(at.state, job.uid, ended=[job.id])
    compared = (*change.compared, UserKey(job.uid))
    return replace(change, compared=compared, values=(*change.values, user) if user else change.values)


def _shown(ranges: Ranges) -> str:
    return f"{ranges.pods}, blocks of /{ranges.block_prefix}, VNIs {ranges.vni_first} to {ranges.vni_last}"
