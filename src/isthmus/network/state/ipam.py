"""Address management (IPAM): pure, computed from the whole state.

A user has one VNI and some blocks of the pod range; all their addresses come from them. The search goes on after the
address given last, so a freed one rests while the others have their turn, and stale entries of neighbours die. When
the blocks are full, one more is taken: a power of two, large enough for what is missing, and at least as large as all
the user has, so that routes stay few however small their jobs are; where the range has no such gap, smaller ones.
Where there are gateways, a user with jobs has a leg on each of them as well: the jobs' way out and in.
A user of whom nothing lives gives back all blocks but the first: without a leg no node remembers their addresses.

In use are the addresses of a user's live jobs, of legs that a job or a lease needs, and of reservations. The state
must be of ONE revision of etcd. Every transaction that writes a result compares and writes `users/<uid>`, also when
the user did not change: that is what makes two nodes that act for one user at once notice each other.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from ipaddress import IPv4Address, IPv4Network
from itertools import chain, islice

from isthmus.model.network import Driver, Job, Ranges, State, User
from isthmus.network.bounds import LOGIN_FIRST
from isthmus.network.state.blocks import after, grow, hosts

# A user's at a time; each is an address that nobody else can have.
RESERVED_MAX = 64


class AllocationError(Exception):
    """Nothing was taken; the message says why, and the remedy."""


class RangeFullError(AllocationError):
    """The pod range has no free addresses that would do."""


class VnisFullError(AllocationError):
    """Every VNI has a user."""


class TooManyReservedError(AllocationError):
    """A user has as many reservations as one may have."""


class NotReservedError(AllocationError):
    """A job names a reservation that its user does not have, or that its network does not know."""


class ReservationBusyError(AllocationError):
    """A reservation's address is another live job's."""


class LoginTakenError(AllocationError):
    """Another login pod got the id a moment before."""


@dataclass(frozen=True, slots=True)
class Request:
    """A job that wants a network.

    Attributes:
        job: Slurm's job id.
        uid: whose job.
        user: the login name.
        name: the job's name.
        nodes: in Slurm's order.
        reservation: name whose address the pod on the first node gets; empty for none.
        driver: which network.
    """

    job: int
    uid: int
    user: str
    name: str
    nodes: tuple[str, ...]
    reservation: str = ""
    driver: Driver = Driver.PRIVATE


@dataclass(frozen=True, slots=True)
class Taken:
    """What a job takes, and the documents to write in one transaction.

    Attributes:
        user: with new legs, blocks and cursor.
        job: with an address for each node.
        grew: a VNI or a block was taken: the transaction compares and rewrites the guard, too.
        new: False when etcd has all of it already, and nothing is to be written.
    """

    user: User
    job: Job
    grew: bool
    new: bool


@dataclass(frozen=True, slots=True)
class Given:
    """One address for a leg or a reservation; `grew` and `new` as for Taken."""

    user: User
    address: IPv4Address
    grew: bool
    new: bool


def take(state: State, ranges: Ranges, request: Request) -> Taken:
    """Give a job its addresses, and legs to those of its nodes where its user has none.

    A job that is known on the same nodes keeps its addresses; on other nodes (requeued) it gets others, and legs that
    only its former nodes needed go. An id that etcd has for another user (Slurm began to count again) is replaced.

    Raises:
        AllocationError: in one of its kinds.
    """
    known = state.jobs.get(request.job)
    others = [job for job in _jobs(state, request.uid) if job.id != request.job]
    before = state.users.get(request.uid)
    user = replace(before, name=request.user) if before else _new_user(state, ranges, request.uid, request.user)
    kept = known is not None and _is_same(known, request)
    if known and not kept and request.job >= LOGIN_FIRST:
        raise LoginTakenError(f"id {request.job} is another login pod's; choose another one")
    wanted = (*request.nodes, *sorted(state.gateways.difference(request.nodes)))
    legs = _legs(user, others, _leased(state, request.uid).union(wanted))
    bare = [node for node in wanted if node not in legs]
    fixed = list(known.addresses) if known and kept else _reserved_address(user, others, request)
    used = _used(user, others, legs, fixed)
    missing = len(request.nodes) - len(fixed)
    user, given = _give(state, ranges, user, used, missing + len(bare))
    job = Job(
        request.job,
        request.uid,
        # A prolog does not get the name, which may be known already (`jobnames`).
        request.name or (known.name if known and kept else ""),
        request.driver,
        request.nodes,
        (*fixed, *given[:missing]),
        request.reservation,
    )
    user = replace(user, legs={**legs, **dict(zip(bare, given[missing:], strict=True))})
    grew = before is None or user.blocks != before.blocks
    return Taken(user, job, grew, new=(user, job) != (before, known))


def note(state: State, ranges: Ranges, request: Request) -> Taken:
    """Note a job whose nodes give the addresses. Legs that only its former self needed go.

    The user is noted with a VNI even if they never have a private network: names of pods are made of the user's.

    Raises:
        AllocationError: in one of its kinds.
    """
    if request.reservation:
        raise NotReservedError(
            f"reservation {request.reservation} is of {request.user}'s private network; leave it out, or use private"
        )
    known = state.jobs.get(request.job)
    others = [job for job in _jobs(state, request.uid) if job.id != request.job]
    before = state.users.get(request.uid)
    user = replace(before, name=request.user) if before else _new_user(state, ranges, request.uid, request.user)
    user = replace(user, legs=_legs(user, others, _needed(state, others, _leased(state, request.uid))))
    job = Job(request.job, request.uid, request.name, request.driver, request.nodes, ())
    return Taken(user, job, grew=before is None, new=(user, job) != (before, known))


def lease(state: State, ranges: Ranges, uid: int, user_name: str, node: str) -> Given:
    """Give a user a leg on a node; the lease itself is the caller's to write.

    Raises:
        AllocationError: in one of its kinds.
    """
    user = state.users.get(uid)
    if user is not None and node in user.legs:
        return Given(user, user.legs[node], grew=False, new=False)
    grown, address = _one(state, ranges, uid, user_name)
    grew = user is None or grown.blocks != user.blocks
    return Given(replace(grown, legs={**grown.legs, node: address}), address, grew, new=True)


def lead_out(state: State, ranges: Ranges, uid: int, node: str) -> Given | None:
    """Give a user with jobs a leg on a gateway that was none when the jobs began; None where there is no need.

    Raises:
        AllocationError: in one of its kinds.
    """
    user = state.users.get(uid)
    if user is None or node in user.legs or node not in state.gateways or not _jobs(state, uid):
        return None
    grown, address = _one(state, ranges, uid, user.name)
    given = replace(grown, legs={**grown.legs, node: address})
    return Given(given, address, grew=user.blocks != grown.blocks, new=True)


def reserve(state: State, ranges: Ranges, uid: int, user_name: str, name: str) -> Given:
    """Keep an address for a user's service; the same one whenever it is asked for.

    Raises:
        AllocationError: in one of its kinds.
    """
    user = state.users.get(uid)
    if user is not None and name in user.reserved:
        return Given(user, user.reserved[name], grew=False, new=False)
    if user is not None and len(user.reserved) >= RESERVED_MAX:
        raise TooManyReservedError(f"{user_name} has {RESERVED_MAX} reservations, as many as one may; give one back")
    grown, address = _one(state, ranges, uid, user_name)
    grew = user is None or grown.blocks != user.blocks
    return Given(replace(grown, reserved={**grown.reserved, name: address}), address, grew, new=True)


def unreserve(user: User, name: str) -> User:
    """Give a reservation back; a job that has its address keeps it to its end. What is gone is gone."""
    return replace(user, reserved={each: address for each, address in user.reserved.items() if each != name})


def release(state: State, uid: int, ended: Collection[int] = (), dropped: Collection[str] = ()) -> User | None:
    """Return the user without some jobs and leases: legs that nothing needs are gone, blocks of an idle user.

    Args:
        state: of one revision.
        uid: whose.
        ended: ids of jobs that are deleted in the same transaction.
        dropped: nodes whose leases are deleted in the same transaction.

    Returns:
        None when etcd does not know the user.
    """
    user = state.users.get(uid)
    if user is None:
        return None
    jobs = [job for job in _jobs(state, uid) if job.id not in ended]
    leased = _leased(state, uid).difference(dropped)
    legs = _legs(user, jobs, _needed(state, jobs, leased))
    if jobs or leased:
        return replace(user, legs=legs)
    blocks = tuple(block for block in user.blocks if block == user.blocks[0] or _holds(block, user.reserved.values()))
    cursor = user.cursor if user.cursor is not None and any(user.cursor in block for block in blocks) else None
    return replace(user, legs=legs, blocks=blocks, cursor=cursor)


def _jobs(state: State, uid: int) -> list[Job]:
    return [job for job in state.jobs.values() if job.uid == uid and job.addresses]


def _is_same(known: Job, request: Request) -> bool:
    had = (known.uid, known.driver, known.nodes, known.reservation)
    return had == (request.uid, request.driver, request.nodes, request.reservation)


def _new_user(state: State, ranges: Ranges, uid: int, name: str) -> User:
    taken = {user.vni for user in state.users.values()}
    vni = next((vni for vni in range(ranges.vni_first, ranges.vni_last + 1) if vni not in taken), None)
    if vni is None:
        raise VnisFullError(
            f"all VNIs from {ranges.vni_first} to {ranges.vni_last} have users, {name} gets none; give a wider range"
        )
    return User(uid, name, vni)


def _leased(state: State, uid: int) -> set[str]:
    return {node for owner, node in state.leases if owner == uid}


def _needed(state: State, jobs: Collection[Job], leased: set[str]) -> set[str]:
    """Return the nodes besides the jobs' own where a user with some jobs needs a leg."""
    return leased.union(state.gateways if jobs else ())


def _legs(user: User, jobs: Iterable[Job], nodes: Iterable[str]) -> dict[str, IPv4Address]:
    needed = set(nodes).union(*(job.nodes for job in jobs))
    return {node: address for node, address in user.legs.items() if node in needed}


def _reserved_address(user: User, others: Iterable[Job], request: Request) -> list[IPv4Address]:
    name = request.reservation
    if not name:
        return []
    if name not in user.reserved:
        raise NotReservedError(f"{user.name} has no reservation {name}; reserve it before a job names it")
    address = user.reserved[name]
    holder = next((job.id for job in others if address in job.addresses), None)
    if holder is not None:
        raise ReservationBusyError(f"reservation {name} is job {holder}'s; wait until that job has ended")
    return [address]


def _used(
    user: User, jobs: Iterable[Job], legs: Mapping[str, IPv4Address], fixed: Iterable[IPv4Address] = ()
) -> set[int]:
    return set(map(int, chain(legs.values(), user.reserved.values(), fixed, *(job.addresses for job in jobs))))


def _one(state: State, ranges: Ranges, uid: int, user_name: str) -> tuple[User, IPv4Address]:
    user = state.users.get(uid) or _new_user(state, ranges, uid, user_name)
    grown, given = _give(state, ranges, user, _used(user, _jobs(state, uid), user.legs), 1)
    return grown, given[0]


def _give(
    state: State, ranges: Ranges, user: User, used: Collection[int], count: int
) -> tuple[User, list[IPv4Address]]:
    """Return the user with blocks and cursor moved on, and as many addresses as wanted."""
    if count == 0:
        return user, []
    found = list(islice((each for each in after(user.blocks, user.cursor) if each not in used), count))
    missing = count - len(found)
    new = _grow(state, ranges, user, missing)
    found += islice(chain(*map(hosts, new)), missing)
    given = [IPv4Address(each) for each in found]
    return replace(user, blocks=(*user.blocks, *new), cursor=given[-1]), given


def _grow(state: State, ranges: Ranges, user: User, missing: int) -> list[IPv4Network]:
    taken = chain(*(other.blocks for other in state.users.values()))
    owned = sum(block.num_addresses for block in user.blocks)
    new = grow(ranges.pods, ranges.block_prefix, taken, missing, owned)
    if new is None:
        raise RangeFullError(
            f"pod range {ranges.pods} is used up: {user.name} needs {missing} more addresses;"
            " end jobs, or give a larger pod range"
        )
    return new


def _holds(block: IPv4Network, addresses: Iterable[IPv4Address]) -> bool:
    return any(address in block for address in addresses)
