"""The endpoints of a trace: parses the arguments, within what the user may see.

A user sees a state that holds their own network alone (`visible`), and everything is found, and traced, in that: what
is not in it is not shown. Names are those of the DNS.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from ipaddress import IPv4Address, IPv4Network, IPv6Address

from isthmus.model.network import Job, State, label
from isthmus.model.networks.ipv6 import companion, prefix
from isthmus.network.dns.zones import PRIVATE, Zones
from isthmus.network.drivers.registry import NAMES, definition
from isthmus.network.node.rules import Settings

OUTSIDE = "outside"
# RFC 5737: an address of documentation, which no rule is about.
ANYWHERE = IPv4Address("203.0.113.1")


class Kind(StrEnum):
    """What can be at an end."""

    POD = "pod"
    LEG = "leg"
    HOST = "host"
    SERVICE = "service"
    OUTSIDE = "outside"
    NOBODY = "nobody"


@dataclass(frozen=True, slots=True)
class Point:
    """An end of a trace.

    Attributes:
        kind: what it is.
        address: its own.
        text: for people.
        node: where it is; empty where no member has it.
        uid: whose pod or leg it is; of a host that sends, the process's.
        job: of a pod, its job.
        reservation: whose name was asked for, where the address is a reserved one.
        is_ipv6: whether it was named by its IPv6 address.
    """

    kind: Kind
    address: IPv4Address
    text: str
    node: str = ""
    uid: int | None = None
    job: int = 0
    reservation: str = ""
    is_ipv6: bool = False


class PointError(Exception):
    """A word that is no point, or none that the asker may name."""


@dataclass(frozen=True, slots=True)
class Finder:
    """Reads words for one asker.

    Attributes:
        state: what the asker may see.
        settings: the filter's.
        domain: of pods' names.
        asker: their uid; None for root.
        uid_of: gives a login name's uid; raises KeyError.
        services: the addresses of Services.
    """

    state: State
    settings: Settings
    domain: str
    asker: int | None
    uid_of: Callable[[str], int]
    services: IPv4Network

    def source(self, word: str) -> Point:
        """Return where packets come from: a pod, or a process on a host, which is the asker's own unless root says.

        Raises:
            PointError: nothing of the asker's is called so.
        """
        user, at, host = word.rpartition("@")
        point = self.target(host)
        if point.kind in (Kind.NOBODY, Kind.SERVICE) or (at and not point.node):
            raise PointError(f"nobody sends from {word}: {point.text}; name a job, a host, or {OUTSIDE}")
        if point.kind is Kind.POD or not point.node:
            return point
        uid = self._uid(user) if at else self.asker or 0
        if self.asker not in (None, uid):
            raise PointError(f"a process of {user} is not yours; leave out the name")
        return self._host(point.node, uid)

    def target(self, word: str) -> Point:
        """Return where packets go to.

        Raises:
            PointError: nothing that the asker may know is called so.
        """
        if word == OUTSIDE:
            return Point(Kind.OUTSIDE, ANYWHERE, f"outside (as {ANYWHERE}; give an address for the rules about it)")
        try:
            return self._at(IPv4Address(word))
        except ValueError:
            pass
        try:
            return self._ipv6(IPv6Address(word))
        except ValueError:
            pass
        if word in self.state.nodes:
            return self._host(word)
        job, colon, place = word.partition(":")
        if job.isascii() and job.isdecimal():
            return self._pod(self._job(int(job)), place if colon else None)
        return self._named(word)

    def _uid(self, user: str) -> int:
        try:
            return self.uid_of(user)
        except KeyError:
            raise PointError(f"there is no user {user} on this host") from None

    def _job(self, number: int) -> Job:
        job = self.state.jobs.get(number)
        if job is None:
            known = "has no pod network" if self.asker is None else "is not yours, or has no pod network"
            raise PointError(f"job {number} {known}; see `isthmus network list`")
        if not definition(job.driver).is_traced:
            traced = ", ".join(name for name in NAMES if definition(name).is_traced)
            raise PointError(f"job {number} is in network {job.driver}; only {traced} ones are traced")
        return job

    def _pod(self, job: Job, place: str | None) -> Point:
        names = [f"pod{index}" for index in range(len(job.nodes))]
        if place is None:
            index = 0
        elif place in job.nodes:
            index = job.nodes.index(place)
        elif place in names:
            index = names.index(place)
        else:
            raise PointError(f"job {job.id} has no pod {place}; it is on {', '.join(job.nodes)}")
        return _pod_of(job, index)

    def _host(self, node: str, uid: int | None = None) -> Point:
        address = self.state.nodes[node].address
        who = "" if uid is None else f"a process of uid {uid} on "
        return Point(Kind.HOST, address, f"{who}host {node}, {address}", node, uid)

    def _named(self, word: str) -> Point:
        """Find a name of DNS: whole, without the domain, or without the asker's own part."""
        own = self.state.users.get(self.asker) if self.asker is not None else None
        wanted = {word, f"{word}.{self.domain}"} | ({f"{word}.{label(own.name)}.{self.domain}"} if own else set())
        zones = Zones(self.domain)
        zones.follow(self.state)
        for line in zones.all_users(PRIVATE).splitlines():
            address, *names = line.split()
            if wanted & {*names}:
                point = self._at(IPv4Address(address))
                return replace(point, reservation=self._reserved(point))
        whom = "" if self.asker is None else " of yours"
        raise PointError(f"no job, name or host{whom} is called {word}; give an id, an address, or {OUTSIDE}")

    def _reserved(self, point: Point) -> str:
        owner = self.state.users.get(point.uid) if point.uid is not None else None
        kept = owner.reserved.items() if owner else ()
        return next((name for name, address in kept if address == point.address), "")

    def _at(self, address: IPv4Address) -> Point:
        if address.is_loopback:
            raise PointError(f"{address} is each pod's and each host's own; nothing is in its way")
        for name, node in self.state.nodes.items():
            if node.address == address:
                return self._host(name)
        if address in self.settings.pods:
            return self._in_pods(address)
        if self.settings.gateways and address in self.settings.gateways.addresses:
            whose = "" if self.asker is None else ", of whose ports yours alone are shown"
            return Point(Kind.OUTSIDE, address, f"{address} of the gateways{whose}")
        if any(address in each for each in self.settings.hosts):
            return Point(Kind.HOST, address, f"a host of the cluster that is no member, {address}")
        if address in self.services:
            return Point(Kind.SERVICE, address, f"{address}, of Services (`kubectl get services -A` has its name)")
        return Point(Kind.OUTSIDE, address, f"outside, {address}")

    def _ipv6(self, address: IPv6Address) -> Point:
        """Find what has the IPv4 address that an IPv6 one goes with."""
        if address.is_loopback:
            raise PointError(f"{address} is each pod's and each host's own; nothing is in its way")
        if self.settings.ipv6 is None:
            raise PointError(f"{address}: pods of this cluster have no IPv6; an admin sets network_ipv6_range")
        known = companion(prefix(self.settings.ipv6), address)
        if known is None or known not in self.settings.pods:
            raise PointError(f"{address} is of no pod, and pods have no way out by IPv6; use an IPv4 address")
        point = self._in_pods(known)
        return replace(point, text=f"{point.text}, by IPv6 ({address})", is_ipv6=True)

    def _in_pods(self, address: IPv4Address) -> Point:
        if point := at_pod(self.state, address):
            return point
        for user in self.state.users.values():
            for node, leg in user.legs.items():
                if leg == address:
                    return Point(Kind.LEG, address, f"leg of {user.name} on {node}, {address}", node, user.uid)
        whose = "nobody's" if self.asker is None else "not yours"
        return Point(Kind.NOBODY, address, f"{address}, of the pod range, {whose}")


def at_pod(state: State, address: IPv4Address) -> Point | None:
    """Return the pod that has an address, or whose reservation it is; None for neither."""
    for job in state.jobs.values():
        if address in job.addresses and definition(job.driver).is_traced:
            return _pod_of(job, job.addresses.index(address))
    for user in state.users.values():
        for name, kept in user.reserved.items():
            if kept == address:
                return Point(Kind.NOBODY, address, f"{address}, reserved as {name}; no job has it", uid=user.uid)
    return None


def _pod_of(job: Job, index: int) -> Point:
    node, address = job.nodes[index], job.addresses[index]
    return Point(Kind.POD, address, f"pod{index} of job {job.id} on {node}, {address}", node, job.uid, job.id)


def visible(state: State, uid: int | None) -> State:
    """Return what a user may know: the nodes, and their own network; None sees all."""
    if uid is None:
        return state
    return replace(
        state,
        users={each: user for each, user in state.users.items() if each == uid},
        jobs={job.id: job for job in state.jobs.values() if job.uid == uid},
        leases={key: lease for key, lease in state.leases.items() if key[0] == uid},
        exposed={door: each for door, each in state.exposed.items() if each.uid == uid},
    )
