"""Login pods on this node: made at a user's first session, removed after the last.

A session is the process that watches over a connection of sshd's: it begins before the user's programs, ends after
them, and no user can make it live on. However it ends, the kernel reports it. A pod without sessions stays for a moment
(`linger_s`): a script that logs in again and again finds it. Then its first process is stopped, and the kernel ends
what else is in it.

One thing at a time for each user, under a lock. What etcd holds of this node's login pods and nobody knows here, after
a reboot say, is given back by the loop.
"""

from __future__ import annotations

import logging
import pwd
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from threading import Lock
from typing import Any, Protocol

from isthmus.clients.etcd.store import EtcdError
from isthmus.clients.process import ProcessError, run
from isthmus.model.network import Job, State
from isthmus.network.api.messages import ErrorCode
from isthmus.network.api.protocol import RequestError
from isthmus.network.drivers.node import ECHO_S, Network
from isthmus.network.logins import followers, numbers
from isthmus.network.logins.followers import Followers
from isthmus.network.logins.place import Held, Place, ended
from isthmus.network.logins.services import FollowedServices, Following, owners_of_clusters
from isthmus.network.services.apply import PodServices
from isthmus.network.state import ipam
from isthmus.network.state.keys import StoredError
from isthmus.network.state.store import Store, StoreError
from isthmus.network.state.view import View

FOLDER = Path("/run/isthmus/login")
# What pods resolve it by, below the user's domain.
NAME = "login"
# How often sessions are looked at, and how long a unit may take.
LOOK_S = 0.5
UNIT_S = 15.0
TRIES = 5
_ETCD = (EtcdError, StoredError, StoreError)

_log = logging.getLogger(__name__)


class Units(Protocol):
    """The first processes of pods, which outlive the daemon."""

    def start(self, uid: int) -> None:
        """Start one; it is ready when this returns. Raises OSError."""

    def stop(self, uid: int) -> None:
        """End it, and all in the pod. Raises OSError."""


class Systemd:
    """As units of systemd's."""

    def start(self, uid: int) -> None:
        """See Units."""
        self._do("start", _pod_unit(uid))

    def stop(self, uid: int) -> None:
        """See Units."""
        self._do("stop", _pod_unit(uid))

    def listen(self) -> None:
        """Listen for the program that follows Services; it begins with the first who asks. Raises OSError."""
        self._do("start", followers.UNIT)

    def _do(self, *words: str) -> None:
        try:
            run(["systemctl", *words], timeout_s=UNIT_S)
        except ProcessError as error:
            raise OSError(str(error)) from error


@dataclass(slots=True)
class _Pod:
    job: int
    netns: str
    init: Held
    sessions: dict[int, Held] = field(default_factory=dict)
    # Since when nobody is in it, or came for it.
    idle_s: float = 0.0


class LoginPods:
    """May be used by several threads.

    Args:
        node: this node's name.
        settings: the admin's.
        store: etcd.
        view: the newest snapshot.
        network: makes the pods' networks.
        services: of pods.
        units: their first processes.
        folder: of their folders.
        followers_: of the Services in them.
    """

    def __init__(
        self,
        node: str,
        settings: numbers.Logins,
        store: Store,
        view: View,
        network: Network,
        services: PodServices,
        units: Units | None = None,
        folder: Path = FOLDER,
        followers_: Following | None = None,
    ) -> None:
        self._node, self._settings = node, settings
        self._store, self._view, self._network = store, view, network
        self._units: Units = units or Systemd()
        self._folder = folder
        self._services = FollowedServices(followers_ or Followers(folder, Systemd().listen), services)
        self._pods: dict[int, _Pod] = {}
        self._locks: dict[int, Lock] = {}
        # Whose last pod could not be removed: systemd would not start a unit that still runs.
        self._left: set[int] = set()
        self._recover()

    def prepare(self, uid: int) -> Mapping[str, Any]:
        """Make a user's pod if there is none; return what a session needs to know.

        Raises:
            RequestError: it could not be made.
            AllocationError: there is no address for it.
            EtcdError, StoredError, StoreError: of a pod that is to be made.
        """
        with self._lock(uid):
            return _reply(self._pod(uid))

    def enter(self, uid: int, pid: int) -> Mapping[str, Any]:
        """Do the same, and count a process as a session."""
        with self._lock(uid):
            pod = self._pod(uid)
            try:
                pod.sessions[pid] = self._place(uid).remember(pid)
            except OSError as error:
                raise RequestError(ErrorCode.INVALID, f"process {pid} has ended: {error}") from error
            return _reply(pod)

    def owners(self) -> list[int]:
        """Return whose pods are here."""
        return list(self._pods)

    def follow(self) -> None:
        """Remove pods whose sessions have ended; never returns."""
        while True:
            time.sleep(LOOK_S)
            self.look()

    def look(self) -> None:
        """Remove those whose sessions have ended by now, and give back what nobody here knows of."""
        state = self._view.snapshot.state
        clusters = owners_of_clusters(state)
        self._services.recall()
        for uid in self._due(state, clusters):
            with self._lock(uid):
                self._look(uid, has_cluster=uid in clusters)
        for job in numbers.logins(state):
            if job.nodes == (self._node,) and job.uid not in self._pods:
                with self._lock(job.uid):
                    self._give_back(job.uid, job.id)

    def _due(self, state: State, clusters: Collection[int]) -> list[int]:
        """Return whose pods may have to change: of a thousand that go on, the next look is in half a second."""
        pods = dict(self._pods)
        processes = {uid: [pod.init, *pod.sessions.values()] for uid, pod in pods.items()}
        gone = ended(chain.from_iterable(processes.values()))
        return [
            uid
            for uid, pod in pods.items()
            if len(processes[uid]) == 1
            or not gone.isdisjoint(processes[uid])
            or pod.job not in state.jobs
            or self._services.is_due(uid, has_cluster=uid in clusters)
        ]

    def _lock(self, uid: int) -> Lock:
        return self._locks.setdefault(uid, Lock())

    def _recover(self) -> None:
        """Take over the pods that an earlier daemon made."""
        for folder in self._folder.iterdir() if self._folder.is_dir() else ():
            if not folder.name.isdecimal():
                continue
            uid, place = int(folder.name), Place(folder)
            job, init = place.job(), place.init()
            if init is None or job not in self._view.snapshot.state.jobs:
                _log.warning("the login pod of uid %d is gone", uid)
                self._discard(uid)
                continue
            netns = str((folder / "netns").readlink())
            self._pods[uid] = _Pod(job, netns, init, place.sessions(), time.monotonic())

    def _pod(self, uid: int) -> _Pod:
        pod = self._pods.get(uid)
        if pod and not self._is_whole(pod):
            _log.warning("the login pod of uid %d ended by itself; it is made again", uid)
            self._remove(uid)
            pod = None
        pod = pod or self._make(uid)
        pod.idle_s = time.monotonic()
        return pod

    def _is_whole(self, pod: _Pod) -> bool:
        return pod.init.lives and pod.job in self._view.snapshot.state.jobs

    def _make(self, uid: int) -> _Pod:
        if uid in self._left:
            self._discard(uid)
        job = self._take(uid)
        self._view.keep(job)
        self._network.make(job)
        found = self._network.ready(job)
        if found is None:
            why = "; ".join(f"{subject}: {reason}" for subject, reason in self._network.errors().items())
            raise RequestError(ErrorCode.FAILED, f"the login pod's network could not be made: {why}; see the log")
        try:
            self._place(uid).make(job, found["netns"], found["resolv_conf"], self._settings.ports(job))
            self._units.start(uid)
            init = self._place(uid).init()
        except OSError as error:
            raise RequestError(ErrorCode.FAILED, f"the login pod could not be started: {error}") from error
        if init is None:
            why = f"the login pod ended at once; see journalctl -u isthmus-login@{uid}"
            raise RequestError(ErrorCode.FAILED, why)
        self._pods[uid] = pod = _Pod(job, found["netns"], init)
        return pod

    def _take(self, uid: int) -> int:
        """Return the id of a pod that has its address."""
        try:
            name = pwd.getpwuid(uid).pw_name
        except KeyError as error:
            raise RequestError(ErrorCode.NOT_FOUND, f"there is no user with uid {uid} on this host") from error
        for _ in range(TRIES):
            seen = self._view.snapshot
            known = numbers.pod_of(seen.state, uid, self._node)
            job = known.id if known else numbers.free(seen.state, self._node, self._settings)
            if job is None:
                why = f"all {self._settings.slots} login pods of {self._node} are taken; raise network_login_ports"
                raise RequestError(ErrorCode.FULL, why)
            try:
                self._store.take(ipam.Request(job, uid, name, NAME, (self._node,)), seen)
            except ipam.LoginTakenError:
                self._view.wait(lambda state, job=job: job in state.jobs, ECHO_S)  # type: ignore[misc]
                continue
            if self._view.wait(lambda state, job=job: _is_users(state.jobs.get(job), uid), ECHO_S):  # type: ignore[misc]
                return job
            raise RequestError(ErrorCode.UNAVAILABLE, "etcd took the login pod and does not report it")
        raise RequestError(ErrorCode.UNAVAILABLE, "others took every id first; log in again")

    def _look(self, uid: int, *, has_cluster: bool) -> None:
        pod = self._pods.get(uid)
        if pod is None:
            return
        now_s = time.monotonic()
        for pid in [pid for pid, session in pod.sessions.items() if not session.lives]:
            pod.sessions.pop(pid).close()
            self._place(uid).forget(pid)
            pod.idle_s = now_s
        is_over = not pod.sessions and now_s - pod.idle_s >= self._settings.linger_s
        if is_over or not self._is_whole(pod):
            self._remove(uid)
        else:
            self._services.look(uid, Path(pod.netns).name, now_s, has_cluster=has_cluster)

    def _remove(self, uid: int) -> None:
        pod = self._pods.pop(uid)
        self._services.end(uid)
        for held in (pod.init, *pod.sessions.values()):
            held.close()
        self._discard(uid)
        self._give_back(uid, pod.job)

    def _discard(self, uid: int) -> None:
        try:
            self._units.stop(uid)
            self._place(uid).remove()
            self._left.discard(uid)
        except OSError as error:
            self._left.add(uid)
            _log.warning("the login pod of uid %d is not wholly removed: %s", uid, error)

    def _give_back(self, uid: int, job: int) -> None:
        """Give the address back, unless there is a pod again."""
        snapshot = self._view.snapshot
        if uid in self._pods or not _is_users(snapshot.state.jobs.get(job), uid):
            return
        self._view.release(job)
        try:
            self._store.release({job: snapshot.jobs()[job]}, snapshot)
        except _ETCD as error:
            _log.warning("the address of the login pod of uid %d is given back later: %s", uid, error)

    def _place(self, uid: int) -> Place:
        return Place(self._folder / str(uid))


def _pod_unit(uid: int) -> str:
    return f"isthmus-login@{uid}.service"


def _reply(pod: _Pod) -> Mapping[str, Any]:
    return {"init": pod.init.pid, "netns": pod.netns}


def _is_users(job: Job | None, uid: int) -> bool:
    return job is not None and job.uid == uid
