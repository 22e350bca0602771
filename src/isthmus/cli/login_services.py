"""Brings the Services of a user's cluster into the user's login pod on this host.

`isthmus.cli.login_followers` runs it as the user, in the pod's network, and ends it with the pod or the cluster. It
watches the API server as the kubelet does, and gives the daemon the whole table after a change, at most once in
GATHER_S. A login host has one such process for each of its users, so it has neither an event loop nor threads, keeps
of each object what the table is made of, and leaves to a process of its own what takes memory but once.
"""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from ipaddress import AddressValueError, IPv4Address
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

from isthmus.clients.forks import privileges
from isthmus.clients.kube import kubeconfig as kubeconfigs
from isthmus.clients.kube.errors import GoneError, KubeError, UnreachableError
from isthmus.clients.kube.kubeconfig import Kubeconfig, KubeconfigError
from isthmus.clients.kube.watches import TIMEOUT_S, WATCH_S, Connection, Object
from isthmus.kubelet.objects import servicetable
from isthmus.kubelet.objects.servicetable import SERVICES, SLICE_OF, SLICES
from isthmus.model.services import Answering, ServicePort, bounded
from isthmus.network.api.client import ask
from isthmus.network.api.messages import JobServices, List, Request, Status
from isthmus.network.api.protocol import RequestError
from isthmus.network.bounds import LOGIN_FIRST
from isthmus.support.backoff import Backoff
from isthmus.support.journal import Say, say

# Changes within this time are one.
GATHER_S = 1.0
# Before what failed is tried again: the daemon or a kubeconfig, and the API server.
FIRST_S, LONGEST_S = 0.5, 60.0
SERVER_FIRST_S, SERVER_LONGEST_S = 0.2, 10.0
# A watch that lasted so long was no failure.
STABLE_S = 60.0
# Between two looks whether there is another kubeconfig: of a cluster that was made again, with other keys.
LOOK_S = 15.0
_PIPE_BYTES, _PARTS = 1 << 16, 4
# What the table is made of.
_META, _FIELDS = ("uid", "name", "namespace"), ("spec", "addressType", "ports", "endpoints")

Table = dict[ServicePort, Answering]
Asked = Callable[[Request], dict[str, object]]


class Watched(Protocol):
    """A connection to an API server (`kube.watches.Connection`)."""

    @property
    def is_over(self) -> bool: ...  # noqa: D102
    @property
    def keeps(self) -> bool: ...  # noqa: D102
    def fileno(self) -> int: ...  # noqa: D102
    def get(self, path: str, query: dict[str, str]) -> Object: ...  # noqa: D102
    def watch(self, path: str, version: str) -> None: ...  # noqa: D102
    def events(self) -> list[tuple[str, Object]]: ...  # noqa: D102
    def close(self) -> None: ...  # noqa: D102


class Surroundings:
    """The clock, how one waits, and what hears of failures."""

    def __init__(self, say_: Say = say) -> None:
        self.say = say_

    def now_s(self) -> float:
        """Return the time by a clock that never goes back."""
        return time.monotonic()

    def wait(self, timeout_s: float, connections: Sequence[Watched] = ()) -> None:
        """Wait for so long, or until one of them has something."""
        poll = select.poll()
        for each in connections:
            poll.register(each.fileno(), select.POLLIN)
        poll.poll(1000 * timeout_s + 1)


class Reflected:
    """A collection as it is: listed, then watched, for ever; while nobody answers, the last state stays.

    Attributes:
        objects: what there is of it, by uid; None before it was listed.
        has_changed: since this was set back.
        due_s: when `turn` has something to do, whatever comes.
        connection: by which it is watched.
    """

    def __init__(self, path: str, connect: Callable[[], Watched], say_: Say = say) -> None:
        self._path, self._connect, self._say = path, connect, say_
        self.objects: dict[str, Object] | None = None
        self.has_changed = False
        self.due_s = 0.0
        self.connection: Watched | None = None
        self._version, self._began_s = "", 0.0
        self._has_said = False
        self._backoff = Backoff(SERVER_FIRST_S, SERVER_LONGEST_S)

    def turn(self, now_s: float) -> None:
        """Read what has come, or begin again where it is time for that."""
        try:
            if self.connection:
                self._read(self.connection, now_s)
            elif now_s >= self.due_s:
                self._begin(now_s)
        except GoneError:
            self._version = ""
            self._backoff.reset()
            self._pause(now_s)
        except KubeError as error:
            pause_s = self._pause(now_s)
            self._say(f"{error}; trying again in {pause_s:.1f} s")

    def close(self) -> None:
        """Close the connection."""
        if self.connection:
            self.connection.close()
            self.connection = None

    def _begin(self, now_s: float) -> None:
        self.connection = self._connect()
        if not self._version:
            listed = self.connection.get(self._path, {"limit": "0"})
            self.objects = {one["metadata"]["uid"]: _kept(one) for one in listed.get("items") or ()}
            self.has_changed = True
            self._version = listed["metadata"]["resourceVersion"]
        self._watch(self.connection, now_s)

    def _watch(self, connection: Watched, now_s: float) -> None:
        connection.watch(self._path, self._version)
        self._began_s, self._has_said = now_s, False
        self.due_s = now_s + WATCH_S + TIMEOUT_S

    def _read(self, connection: Watched, now_s: float) -> None:
        for kind, one in connection.events():
            self._take(kind, one)
            self._has_said = True
            self.due_s = now_s + WATCH_S + TIMEOUT_S
            self._backoff.reset()
        if connection.is_over:
            is_stable = self._has_said or now_s - self._began_s >= STABLE_S
            if is_stable and connection.keeps:
                self._watch(connection, now_s)
            else:
                # A watch that the server closes immediately is not reopened immediately.
                self._pause(now_s)
        elif now_s >= self.due_s:
            raise UnreachableError(f"the watch of {self._path} broke: silence")

    def _take(self, kind: str, one: Object) -> None:
        self._version = one["metadata"]["resourceVersion"]
        if kind == "BOOKMARK" or self.objects is None:
            return
        uid = one["metadata"]["uid"]
        if kind == "DELETED":
            self.objects.pop(uid, None)
        else:
            self.objects[uid] = _kept(one)
        self.has_changed = True

    def _pause(self, now_s: float) -> float:
        self.close()
        pause_s = self._backoff.next_s()
        self.due_s = now_s + pause_s
        return pause_s


class Follower:
    """Follows one API server.

    Args:
        connect: opens a connection to it; may raise KubeError.
        put: gives the daemon a table; may raise RequestError or OSError.
        node: the address of the cluster's node, where its node ports answer.
        surroundings: the clock, and what hears of failures.
    """

    def __init__(
        self,
        connect: Callable[[], Watched],
        put: Callable[[Table], None],
        node: IPv4Address | None = None,
        surroundings: Surroundings | None = None,
    ) -> None:
        self._put, self._node, self._around = put, node, surroundings or Surroundings()
        self._reflected = {path: Reflected(path, connect, self._around.say) for path in (SERVICES, SLICES)}
        self._brought: Table | None = None
        self._due_s = 0.0
        self._backoff = Backoff(FIRST_S, LONGEST_S)

    def turn(self, until_s: float) -> None:
        """Do what there is to do, then wait for more; no longer than until a time."""
        for each in self._all:
            each.turn(self._around.now_s())
        self._bring(self._around.now_s())
        due_s = min(until_s, *(each.due_s for each in self._all))
        if self._has_more:
            due_s = min(due_s, self._due_s)
        connections = [each.connection for each in self._all if each.connection]
        self._around.wait(max(0.0, due_s - self._around.now_s()), connections)

    def close(self) -> None:
        """Close all connections."""
        for each in self._all:
            each.close()

    @property
    def _all(self) -> Collection[Reflected]:
        return self._reflected.values()

    @property
    def _has_more(self) -> bool:
        return any(each.has_changed for each in self._all) and all(each.objects is not None for each in self._all)

    def _bring(self, now_s: float) -> None:
        if not self._has_more or now_s < self._due_s:
            return
        services, slices = ((self._reflected[path].objects or {}).values() for path in (SERVICES, SLICES))
        table, _ = bounded(servicetable.table(services, slices, self._node))
        self._due_s = now_s + GATHER_S
        if table != self._brought:
            try:
                self._put(table)
            except (RequestError, OSError) as error:
                pause_s = self._backoff.next_s()
                self._around.say(f"the network daemon has not taken Services: {error}; again in {pause_s:.1f} s")
                self._due_s = now_s + pause_s + GATHER_S
                return
            self._brought = table
            self._backoff.reset()
        for each in self._all:
            each.has_changed = False


def _kept(one: Object) -> Object:
    meta = one["metadata"]
    labels = meta.get("labels") or {}
    kept = {name: meta[name] for name in _META if name in meta}
    if SLICE_OF in labels:
        kept["labels"] = {SLICE_OF: labels[SLICE_OF]}
    return {"metadata": kept, **{name: one[name] for name in _FIELDS if name in one}}


def pod(asked: Asked = ask) -> int:
    """Return the id of the caller's login pod on this host.

    Raises:
        RequestError: the daemon refused.
        OSError: it cannot be reached, or knows of none.
    """
    node = asked(Status())["node"]
    jobs = asked(List())["jobs"]
    for job in jobs if isinstance(jobs, list) else ():
        if job["id"] >= LOGIN_FIRST and job["nodes"] == [node]:
            return int(job["id"])
    raise OSError(f"there is no login pod of this user on {node}")


def put(table: Table, asked: Asked = ask) -> None:
    """Give the daemon a table for the pod that is there now."""
    asked(JobServices(pod(asked), table))


def connecting(file: Path) -> tuple[str, Callable[[], Watched]]:
    """Return the server of a kubeconfig, and what opens connections to it.

    Raises:
        KubeconfigError: it cannot be used.
    """
    found = read_apart(file)
    tls = found.tls()
    return found.server, lambda: Connection(found.server, tls)


def run(
    file: Path,
    put_: Callable[[Table], None] = put,
    connecting_: Callable[[Path], tuple[str, Callable[[], Watched]]] = connecting,
    surroundings: Surroundings | None = None,
) -> None:
    """Follow the cluster of a kubeconfig, and the next one where another is written; never returns."""
    for _ in turns(file, put_, connecting_, surroundings or Surroundings()):
        pass


def turns(
    file: Path,
    put_: Callable[[Table], None],
    connecting_: Callable[[Path], tuple[str, Callable[[], Watched]]],
    around: Surroundings,
) -> Iterator[None]:
    """Do the same; yield after each wait."""
    backoff = Backoff(FIRST_S, LONGEST_S)
    while True:
        written = _written(file)
        try:
            server, connect = connecting_(file)
        except KubeconfigError as error:
            # It is written when the control plane is up, which may be soon.
            pause_s = backoff.next_s()
            around.say(f"{error}; again in {pause_s:.1f} s")
            around.wait(pause_s)
            yield
            continue
        backoff.reset()
        follower = Follower(connect, put_, _node(server), around)
        try:
            while _written(file) == written:
                until_s = around.now_s() + LOOK_S
                while around.now_s() < until_s:
                    follower.turn(until_s)
                    yield
        finally:
            follower.close()


def read_apart(file: Path) -> Kubeconfig:
    """Read a kubeconfig in a process of its own: what YAML takes would stay for as long as this one runs.

    Raises:
        KubeconfigError: it cannot be used.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        status = 1
        try:
            privileges.end_with_parent()
            os.close(reading)
            text = b"\0".join(_parts(file))
            while text:
                text = text[os.write(writing, text) :]
            status = 0
        finally:
            os._exit(status)
    os.close(writing)
    text = b""
    try:
        while piece := os.read(reading, _PIPE_BYTES):
            text += piece
    finally:
        os.close(reading)
        os.waitpid(child, 0)
    why, *parts = text.split(b"\0")
    if why or len(parts) != _PARTS:
        raise KubeconfigError(file, why.decode(errors="replace") or "its reader ended")
    server, *pems = parts
    return Kubeconfig(file, server.decode(), *pems)


def _parts(file: Path) -> tuple[bytes, ...]:
    """Return why a kubeconfig cannot be used, or nothing, and what it has: a URL and PEM, which hold no zero bytes."""
    try:
        found = kubeconfigs.read(file)
    except KubeconfigError as error:
        return (error.why.encode() or b"it cannot be read",)
    return (b"", found.server.encode(), found.ca, found.certificate, found.key)


def _node(server: str) -> IPv4Address | None:
    """Return the node's address: with a private network, the control plane's."""
    with suppress(AddressValueError):
        return IPv4Address(urlsplit(server).hostname or "")
    return None


def _written(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns
