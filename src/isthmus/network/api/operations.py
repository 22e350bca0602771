"""The operations of the protocol, and their authorization.

A job's addresses are taken by its first node, the others wait for them: of a hundred nodes that begin a job at once
one writes to etcd. Where the first node is slow, or dead, each of the others takes them after a moment; etcd lets
one win.
"""

from __future__ import annotations

import logging
import pwd
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, wait
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from ipaddress import IPv4Address
from threading import Lock, Thread
from typing import Any

from isthmus.clients import conntrack
from isthmus.clients.etcd.store import EtcdError
from isthmus.clients.netlink import counters
from isthmus.clients.netlink.wire import NetlinkError
from isthmus.model.network import Driver, Job, State
from isthmus.model.networks.ipv6 import beside, prefix
from isthmus.network import metrics
from isthmus.network.api import limits, messages, protocol
from isthmus.network.api.figures import Preparations, cluster_figures
from isthmus.network.api.messages import ErrorCode, JobState
from isthmus.network.api.protocol import RequestError
from isthmus.network.api.shown import Shown
from isthmus.network.drivers.node import ECHO_S, Network
from isthmus.network.encryption.follow import Encryptor
from isthmus.network.gateways import exposing
from isthmus.network.logins.pods import LoginPods
from isthmus.network.node import rules
from isthmus.network.node.converge import Converger
from isthmus.network.node.plugin import Watcher
from isthmus.network.node.refused import Refused
from isthmus.network.services.apply import PodServices
from isthmus.network.state import ipam
from isthmus.network.state.in_progress import InProgress
from isthmus.network.state.keys import StoredError
from isthmus.network.state.store import Store, StoreError
from isthmus.network.state.view import View

# How long a job waits for its nodes' keys, which come with nodes that have just begun to encrypt.
KEYS_S = 5.0
# How long a node waits for a job's first node to take the addresses.
FIRST_NODE_S = 1.0
# Failures are repeated to later requests for the job; so many are kept.
FAILURES_MAX = 1000

_FORESEEN = (RequestError, ipam.AllocationError, EtcdError, StoredError, StoreError)

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Dependencies:
    """What operations work with.

    Attributes:
        node: this node's name.
        store: etcd.
        view: the newest snapshot.
        converger: the kernel and all that follows from it.
        networks: those that jobs can have here.
        rules: what the packet filter is made of.
        domain: of pods' names.
        services: of pods.
        plugin: looks whether slurmd has ours.
        logins: login pods; None on a host without.
        encryptor: the encryption between nodes; None for a cluster without.
    """

    node: str
    store: Store
    view: View
    converger: Converger
    networks: Mapping[Driver, Network]
    rules: rules.Settings
    domain: str
    services: PodServices
    plugin: Watcher
    logins: LoginPods | None = None
    encryptor: Encryptor | None = None


class Operations:
    """Answers lines; may be used by several threads."""

    def __init__(self, deps: Dependencies) -> None:
        self._deps = deps
        # Job -> whose it was, and why it has no network here.
        self._failures: OrderedDict[int, tuple[int, str]] = OrderedDict()
        self._in_progress = InProgress()
        self._preparations = Preparations()
        self._refused = Refused(partial(counters.packets, rules.TABLE))
        self._writes = limits.Buckets(limits.WRITES_PER_S, limits.WRITES_AT_ONCE)
        # Users' requests are read one at a time: reading takes the interpreter, which root's requests need too.
        self._reading = Lock()

    def admit(self, beginning: bytes, peer: int) -> bytes | None:
        """Return a refusal of a user's long request, of which only the beginning was read; None where it may be."""
        try:
            self._permit(protocol.long_job(beginning), peer)
        except RequestError as error:
            return protocol.refuse(error.code, str(error))
        return None

    def answer(self, line: bytes, peer: int) -> bytes:
        """Return the reply to a request; never raises."""
        try:
            permit = partial(self._permit, peer=peer)
            with self._reading if peer else nullcontext():
                request = protocol.parse_request(line, permit)
            return protocol.accept(self._do(request, peer))
        except RequestError as error:
            return protocol.refuse(error.code, str(error))
        except ipam.AllocationError as error:
            return protocol.refuse(ErrorCode.FULL, str(error))
        except (EtcdError, StoredError, StoreError) as error:
            return protocol.refuse(ErrorCode.UNAVAILABLE, str(error))
        except Exception:
            _log.exception("a request of uid %d ended in an error nobody foresaw", peer)
            return protocol.refuse(ErrorCode.INTERNAL, "the daemon failed; an admin finds why in its log")

    def _permit(self, job: int, peer: int) -> None:
        owner = self._owner(job)
        protocol.authorise(messages.JobServices(job, {}), peer, owner)
        if peer and owner is None:
            raise self._no_pod(job)

    def _no_pod(self, job: int) -> RequestError:
        why = f"job {job} has no private network on {self._deps.node}; Services are for pods with one"
        return RequestError(ErrorCode.NOT_FOUND, why)

    def _owner(self, job: int) -> int | None:
        """Return whose a job is; for one that etcd has no more, by the pod or the failure here."""
        deps = self._deps
        if known := deps.view.snapshot.state.jobs.get(job):
            return known.uid
        for network in deps.networks.values():
            if (uid := network.owner(job)) is not None:
                return uid
        return self._failures[job][0] if job in self._failures else None

    def _do(self, request: messages.Request, peer: int) -> Mapping[str, Any]:
        owner = self._owner(request.job) if isinstance(request, messages.JobGet | messages.JobServices) else None
        uid = protocol.authorise(request, peer, owner)
        match request:
            case messages.JobPrepare():
                return self._prepare(request)
            case messages.JobGet(job):
                # A job without a known owner is shown to root alone.
                return self._get(job) if uid in (None, owner) else {"state": JobState.ABSENT}
            case messages.JobRelease(job):
                return self._release(job)
            case messages.JobServices():
                return self._services(request, uid)
            case messages.Status():
                return self._status(uid)
            case messages.List():
                return self._list(uid)
            case messages.NodeForget(node):
                return self._forget(node)
            case messages.Rekey():
                return self._rekey()
            case messages.Trace():
                return self._trace(request, uid)
            case messages.Metrics():
                return {"text": self._metrics()}
            case messages.LoginPrepare():
                return self._logins().prepare(request.uid)
            case messages.LoginEnter():
                return self._logins().enter(request.uid, request.pid)
        if peer:
            self._spend_write(peer)
        return self._of_user(request, uid)

    def _metrics(self) -> str:
        try:
            return metrics.page(self._refused.packets())
        except NetlinkError as error:
            raise RequestError(ErrorCode.UNAVAILABLE, str(error)) from error

    def _spend_write(self, uid: int) -> None:
        """Refuse a user who writes to etcd again and again: all of it is kept there for a while."""
        wait_s = self._writes.take(uid)
        if wait_s:
            why = f"more than {limits.WRITES_AT_ONCE:g} changes at once, and {limits.WRITES_PER_S:g} a second"
            raise RequestError(ErrorCode.UNAVAILABLE, f"{why}; try again in {wait_s:.0f} s or later")

    def _of_user(self, request: messages.Request, uid: int | None) -> Mapping[str, Any]:
        assert uid is not None  # noqa: S101 -- authorise names one for each of these
        deps = self._deps
        match request:
            case messages.LeaseTake():
                return self._lease(uid)
            case messages.LeaseDrop():
                return {"dropped": deps.store.drop_lease(uid, deps.node)}
            case messages.Reserve(name):
                return {"address": deps.store.reserve(uid, _login(uid), name)}
            case messages.Unreserve(name):
                return self._unreserve(uid, name)
            case messages.Expose():
                return self._expose(request, uid)
            case messages.Withdraw():
                return self._withdraw(request, uid)
        raise RequestError(ErrorCode.UNKNOWN_OP, f"{type(request).__name__} is not done here")

    def _unreserve(self, uid: int, name: str) -> Mapping[str, Any]:
        gateways = self._deps.rules.gateways
        if gateways and name in gateways.named(uid):
            why = f"a rule of network_ingress names {name}; an admin takes the rule out first"
            raise RequestError(ErrorCode.INVALID, why)
        return {"dropped": self._deps.store.unreserve(uid, name)}

    def _expose(self, request: messages.Expose, uid: int) -> Mapping[str, Any]:
        gateways, user = self._deps.rules.gateways, _login(uid)
        wanted = exposing.wanted(gateways, uid, user, request.name, request.protocol, request.port)
        new = self._deps.store.expose(wanted, user)
        return {"outside": f"{wanted.address}:{wanted.port}", "protocol": wanted.protocol, "new": new}

    def _withdraw(self, request: messages.Withdraw, uid: int) -> Mapping[str, Any]:
        deps = self._deps
        # Also those of outside addresses that the user had before.
        opened = exposing.of_reservation(deps.store.load().state, uid, request.name)
        asked = [each for each in opened if (each.protocol, each.port) == (request.protocol, request.port)]
        return {"withdrawn": any([deps.store.withdraw(each) for each in asked])}

    def _prepare(self, request: messages.JobPrepare) -> Mapping[str, Any]:
        # Not in the thread: a client that got "in progress" may query or release the job before the thread runs.
        begun = self._in_progress.begin(request.job, 0)
        if request.answer_s is None:
            return self._finish(request, begun)
        ending: Future[Mapping[str, Any]] = Future()
        work = partial(self._finish, request, begun)
        Thread(target=_finish, args=(ending, work, request.job), name=f"job {request.job}", daemon=True).start()
        if not wait([ending], request.answer_s).done:
            return {"state": JobState.PREPARING}
        return ending.result()

    def _finish(self, request: messages.JobPrepare, begun: bool) -> Mapping[str, Any]:
        """Make it, after what is still made for the job's stay before, and keep why that failed for who asks later."""
        job, deadline = request.job, time.monotonic() + request.timeout_s
        if not begun and not self._in_progress.begin(job, request.timeout_s):
            raise RequestError(ErrorCode.UNAVAILABLE, f"job {job} is still being prepared as it was before")
        self._failures.pop(job, None)
        why = "the daemon failed; an admin finds why in its log"
        try:
            with self._preparations.timed():
                made = self._make(request, deadline)
            why = ""
            return made
        except _FORESEEN as error:
            why = str(error)
            raise
        finally:
            if why:
                self._failures[job] = request.uid, why
            while len(self._failures) > FAILURES_MAX:
                self._failures.popitem(last=False)
            while not self._in_progress.end(job):
                self._undo(job)

    def _make(self, request: messages.JobPrepare, deadline: float) -> Mapping[str, Any]:
        if request.driver not in self._deps.networks:
            there = " or ".join(self._deps.networks)
            raise RequestError(ErrorCode.INVALID, f"this cluster has no pod network {request.driver}; use {there}")
        if self._deps.node not in request.nodes:
            raise RequestError(ErrorCode.INVALID, f"node {self._deps.node} is none of the job's")
        self._wait_for_keys(request, deadline)
        self._take(request, deadline)
        return self._made(request.job, request.driver)

    def _wait_for_keys(self, request: messages.JobPrepare, deadline: float) -> None:
        """Refuse a job to whose other nodes nothing could be sent: its ranks would wait for one another for ever."""
        encryptor = self._deps.encryptor
        if encryptor is None or request.driver is not Driver.PRIVATE:
            return
        left_s = min(KEYS_S, deadline - time.monotonic() - ECHO_S)
        if why := encryptor.wait_for(_addresses(self._deps.view.state(), request.nodes), max(0, left_s)):
            raise RequestError(ErrorCode.FAILED, why)

    def _rekey(self) -> Mapping[str, Any]:
        if self._deps.encryptor is None:
            why = "packets between this cluster's nodes are not encrypted; set network_encryption: wireguard"
            raise RequestError(ErrorCode.INVALID, why)
        self._deps.encryptor.rekey()
        return {"state": "the key is being changed; `isthmus network status` shows the new one"}

    def _take(self, request: messages.JobPrepare, deadline: float) -> None:
        deps = self._deps
        has_it = _is_taken(request)
        first = request.nodes[0] == deps.node
        if not first:
            deps.view.wait(has_it, FIRST_NODE_S)
        if not has_it(deps.view.snapshot.state):
            wanted = ipam.Request(
                request.job,
                request.uid,
                request.user,
                request.name,
                request.nodes,
                request.reservation,
                request.driver,
            )
            self._claim(wanted, deadline)
            if not deps.view.wait(has_it, max(ECHO_S, deadline - time.monotonic())):
                raise RequestError(ErrorCode.UNAVAILABLE, "etcd took the job's network and does not return it")
        deps.view.keep(request.job)

    def _claim(self, wanted: ipam.Request, deadline: float) -> None:
        """Take the addresses; a reserved one may still be that of a job which ended a moment ago."""
        view = self._deps.view
        while True:
            seen = view.snapshot
            try:
                self._deps.store.take(wanted, seen)
                return
            except ipam.ReservationBusyError:
                left_s = deadline - time.monotonic() - ECHO_S
                if not view.wait(_is_after(seen.state.revision), max(0, left_s)):
                    raise

    def _made(self, job: int, driver: Driver) -> Mapping[str, Any]:
        network = self._deps.networks[driver]
        network.make(job)
        found = network.ready(job)
        if found is None:
            raise RequestError(ErrorCode.FAILED, _why(job, self._errors()))
        return found

    def _get(self, job: int) -> Mapping[str, Any]:
        for network in self._deps.networks.values():
            if found := network.ready(job):
                return {"state": JobState.READY, **found}
        if self._in_progress.has(job):
            return {"state": JobState.PREPARING}
        if job in self._failures:
            return {"state": JobState.FAILED, "error": self._failures[job][1]}
        if self._deps.node in _nodes(self._deps.view.state().jobs.get(job)):
            return {"state": JobState.PREPARING}
        return {"state": JobState.ABSENT}

    def _release(self, job: int) -> Mapping[str, Any]:
        self._in_progress.release(job)
        self._undo(job)
        return {}

    def _undo(self, job: int) -> None:
        self._failures.pop(job, None)
        self._deps.view.release(job)

    def _services(self, request: messages.JobServices, uid: int | None) -> Mapping[str, Any]:
        pod = self._deps.converger.last.plan.pods.get(request.job)
        # A job that etcd has no more may still have its pod, and no owner to compare with before.
        if pod is None or uid not in (None, pod.uid):
            raise self._no_pod(request.job)
        self._deps.services.set(pod.namespace, pod.uid, request.services, pod.blocks)
        return {}

    def _lease(self, uid: int) -> Mapping[str, Any]:
        deps = self._deps
        name = _login(uid)
        address = deps.store.lease(uid, name, deps.node, int(time.time()), deps.view.snapshot)
        if not deps.view.wait(lambda state: (uid, deps.node) in state.leases, ECHO_S):
            raise RequestError(ErrorCode.UNAVAILABLE, "etcd took the lease and does not return it")
        outcome = deps.converger.run(deps.view.state)
        for leg in outcome.plan.legs.values():
            if leg.uid == uid and leg.name not in outcome.errors:
                six = {"ipv6": str(beside(leg.ipv6, leg.address))} if leg.ipv6 else {}
                return {"leg": leg.name, "address": address, **six}
        raise RequestError(ErrorCode.FAILED, f"the network of {name} could not be made here: {dict(outcome.errors)}")

    def _trace(self, request: messages.Trace, uid: int | None) -> Mapping[str, Any]:
        from isthmus.network.api import tracing

        return tracing.answer(self._deps, request, uid)

    def _logins(self) -> LoginPods:
        if self._deps.logins is None:
            why = f"{self._deps.node} has no login pods; run playbooks/network.yml, which makes /etc/pam.d/sshd right"
            raise RequestError(ErrorCode.INVALID, why)
        return self._deps.logins

    def _forget(self, node: str) -> Mapping[str, Any]:
        if node == self._deps.node:
            raise RequestError(ErrorCode.INVALID, f"{node} is this very node, whose daemon runs; ask on the controller")
        return {"forgotten": self._deps.store.forget(node)}

    def _status(self, uid: int | None) -> Mapping[str, Any]:
        outcome = self._deps.converger.last
        mine = [leg for leg in outcome.plan.legs.values() if uid in (None, leg.uid)]
        tracked = conntrack.table()
        encryptor = self._deps.encryptor
        return {
            "node": self._deps.node,
            "revision": self._deps.view.snapshot.state.revision,
            "legs": len(mine),
            "pods": sum(1 for each in self._deps.networks.values() for owner in each.owners() if uid in (None, owner)),
            "plugin": self._deps.plugin.state(),
            **self._leading(),
            **({} if tracked is None else {"connections": str(tracked)}),
            **({"ipv6": str(self._deps.rules.ipv6)} if self._deps.rules.ipv6 else {}),
            "errors": {**self._errors(), **_full(tracked)} if uid is None else {},
            **({"figures": self._figures()} if uid is None else {}),
            **({"encryption": encryptor.status(self._members())} if encryptor and uid is None else {}),
        }

    def _leading(self) -> Mapping[str, str]:
        if self._deps.rules.gateways is None:
            return {}
        state = self._deps.view.snapshot.state
        if state.gateway in state.heard:
            return {"gateway": state.gateway}
        return {"gateway": f"{state.gateway}, which is not heard of" if state.gateway else "none yet"}

    def _figures(self) -> Mapping[str, Any]:
        deps = self._deps
        cluster = cluster_figures(deps.view.snapshot.state, deps.rules.pods)
        return {"preparations": self._preparations.figures(), "cluster": cluster}

    def _errors(self) -> dict[str, str]:
        problem = self._deps.store.problem
        is_taken = {name: why for each in self._deps.networks.values() for name, why in each.errors().items()}
        unencrypted = self._deps.encryptor.wait_for(self._members(), 0) if self._deps.encryptor else ""
        return {
            **({"etcd": problem} if problem else {}),
            **({"encryption": unencrypted} if unencrypted else {}),
            **is_taken,
        }

    def _members(self) -> Mapping[str, IPv4Address]:
        state = self._deps.view.snapshot.state
        return _addresses(state, state.nodes)

    def _list(self, uid: int | None) -> Mapping[str, Any]:
        state = self._deps.view.snapshot.state
        users = [user for user in state.users.values() if uid in (None, user.uid)]
        range = self._deps.rules.ipv6
        shown = Shown(prefix(range) if range else None)
        return {
            "jobs": [shown.job(job, state) for _, job in sorted(state.jobs.items()) if uid in (None, job.uid)],
            "users": [shown.user(user) for user in users],
            "reserved": [
                shown.reserved(user, name, address) for user in users for name, address in sorted(user.reserved.items())
            ],
            **self._exposed(state, uid),
        }

    def _exposed(self, state: State, uid: int | None) -> Mapping[str, Any]:
        gateways = self._deps.rules.gateways
        if gateways is None and not state.exposed:
            return {}
        return {"exposed": list(exposing.shown(state, gateways, uid))}


def _full(tracked: conntrack.Table | None) -> Mapping[str, str]:
    return {"connections": tracked.problem} if tracked and tracked.problem else {}


def _finish(ending: Future[Mapping[str, Any]], work: Callable[[], Mapping[str, Any]], job: int) -> None:
    # A caller that still waits raises its error; the job's steps get the result anyway.
    try:
        ending.set_result(work())
    except Exception as error:
        unforeseen = None if isinstance(error, _FORESEEN) else error
        _log.warning("job %d has no network here: %s", job, error, exc_info=unforeseen)
        ending.set_exception(error)


def _is_taken(request: messages.JobPrepare) -> Callable[[State], bool]:
    """Return whether a state has a job as it is asked for."""
    wanted = (request.uid, request.nodes, request.driver, request.reservation)

    def is_taken(state: State) -> bool:
        job = state.jobs.get(request.job)
        return job is not None and (job.uid, job.nodes, job.driver, job.reservation) == wanted

    return is_taken


def _is_after(revision: int) -> Callable[[State], bool]:
    return lambda state: state.revision > revision


def _why(job: int, errors: Mapping[str, str]) -> str:
    reasons = "; ".join(f"{subject}: {reason}" for subject, reason in errors.items())
    return f"the network of job {job} could not be made here: {reasons or 'nobody knows it'}"


def _addresses(state: State, nodes: Iterable[str]) -> Mapping[str, IPv4Address]:
    """Return the addresses of those nodes that are members."""
    return {node: state.nodes[node].address for node in nodes if node in state.nodes}


def _nodes(job: Job | None) -> tuple[str, ...]:
    return job.nodes if job else ()


def _login(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError as error:
        raise RequestError(ErrorCode.NOT_FOUND, f"there is no user with uid {uid} on this host") from error
