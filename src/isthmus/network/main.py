"""isthmus-networkd: the composition root, and its threads.

watch    etcd's changes become the newest snapshot
follow   each snapshot is carried out on this node
<driver> the same for a driver's own pods, if they take their time
lead     on a gateway: etcd hears of it, and it leads out if no other does
release  on the controller: addresses of ended jobs are given back, and names of jobs learnt
space    on the controller: whether etcd takes writes, for `status`
leases   leases without use are dropped
keys     where packets between nodes are encrypted: what nodes publish of their keys
tunnel   the same: the device follows that
beat     etcd hears of this node
silence  on the controller: leases and login pods of nodes that are not heard of any more are ended
logins   login pods without sessions are removed
serve    requests of root; a thread per connection
users    everybody's requests, on a socket of their own
accounts connections to the sockets of single accounts

Any of them that ends, ends the daemon: systemd starts it again, and live pods do not notice.
"""

from __future__ import annotations

import logging
import os
import random
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

from isthmus.clients.cni.plugins import CniError
from isthmus.clients.etcd.store import Etcd, EtcdError
from isthmus.clients.netlink.held import HeldAddresses
from isthmus.clients.netlink.namespaces import has_ipv6
from isthmus.clients.netlink.networks import Kernel, NetlinkError
from isthmus.clients.nftables import NftError
from isthmus.clients.process import ProcessError, run
from isthmus.clients.slurm.commands import SlurmError, jobs_on_nodes
from isthmus.clients.wireguard.device import WireGuardError
from isthmus.model.network import Driver, Node
from isthmus.model.node_network import SharedPod
from isthmus.network import settings as network_settings
from isthmus.network.api.account_sockets import AccountSockets
from isthmus.network.api.operations import Dependencies, Operations
from isthmus.network.api.server import Server, UsersServer
from isthmus.network.dns.jobnames import renamed
from isthmus.network.dns.names import NodeNames
from isthmus.network.drivers.node import SHARED_ERRORS, Network, NodeContext, connect
from isthmus.network.encryption import setup as encryption
from isthmus.network.gateways.active import CALL_S, PAUSES_S, Election, Gateway
from isthmus.network.gateways.outside import OutsideAddresses
from isthmus.network.logins.pods import LoginPods
from isthmus.network.node.converge import Converger
from isthmus.network.node.filtering import NodeFilter, read_rules, size_tracking
from isthmus.network.node.plugin import Watcher
from isthmus.network.services.apply import PodServices
from isthmus.network.settings import Settings, SettingsError
from isthmus.network.state import ended, heartbeats, leases
from isthmus.network.state.keys import Keys, StoredError
from isthmus.network.state.store import HeardError, OlderMembersError, Store, StoreError
from isthmus.network.state.view import View
from isthmus.support.notify import notify, watchdog_interval_s

# How often Slurm is asked for ended jobs while etcd has any, and how often leases are looked at.
RELEASE_S = 3.0
LEASES_S = 60.0
# How often the controller looks whether etcd has room for writes.
SPACE_S = 20.0
# A pass without a change, so that a failed step is tried again and the kernel looked at now and then.
IDLE_S = 10.0
# How often systemd hears that the daemon lives; no longer when the node was not looked after for so long.
PULSE_S = 20.0
STUCK_S = 60.0
# How long a thread may keep the interpreter while others want it: root's requests wait so long for each of users'.
SWITCH_S = 0.0005

_log = logging.getLogger("isthmus-networkd")


class Daemon:
    """The threads; `run` returns only when one of them has ended."""

    def __init__(self, settings: Settings, store: Store, deps: Dependencies, gateway: Gateway | None = None) -> None:
        self._settings = settings
        self._store = store
        self._deps = deps
        self._gateway = gateway
        self._ended = threading.Event()
        self._followed_s = time.monotonic()

    def run(self) -> None:
        """Start all threads and wait; the socket opens when the node is as etcd wants it."""
        deps = self._deps
        deps.converger.run(deps.view.state)
        # The rules are there, and with them what they load.
        size_tracking(self._settings.rules)
        operations = Operations(deps)
        server = Server(self._settings.root_socket, operations.answer)
        users = UsersServer(self._settings.socket, operations.answer, operations.admit)
        loops: dict[str, Callable[[], None]] = {"watch": self._watch, "leases": self._leases}
        if self._settings.releases:
            loops |= {"release": self._release, "space": self._look_at_space}
        if self._settings.lease_ttl_s:
            loops["beat"] = self._beat
            loops |= {"silence": self._silence} if self._settings.releases else {}
        if self._gateway:
            loops |= self._gateway.loops()
        if deps.encryptor:
            loops |= {"keys": deps.encryptor.listen, "tunnel": deps.encryptor.follow}
        if deps.logins:
            loops["logins"] = deps.logins.follow
        for driver, network in deps.networks.items():
            if follow := network.loop():
                loops[driver] = partial(follow, IDLE_S)
        loops |= {"serve": server.serve_forever, "users": users.serve_forever, "accounts": users.own.serve_forever}
        loops["follow"] = partial(self._follow, users.own)
        for name, loop in loops.items():
            threading.Thread(target=self._guarded, args=(name, loop), name=name, daemon=True).start()
        notify("READY=1", f"STATUS={len(deps.view.snapshot.state.nodes)} members")
        pulse_s = watchdog_interval_s() or PULSE_S
        while not self._ended.wait(pulse_s):
            if time.monotonic() - self._followed_s < STUCK_S:
                notify("WATCHDOG=1")

    def _guarded(self, name: str, loop: Callable[[], None]) -> None:
        try:
            loop()
        except Exception:
            _log.exception("thread %s ended", name)
        finally:
            self._ended.set()

    def _watch(self) -> None:
        for snapshot in self._store.feed(self._deps.view.snapshot, lambda line: _log.warning("%s", line)):
            self._deps.view.set(snapshot)

    def _follow(self, sockets: AccountSockets) -> None:
        turn = 0
        while True:
            # Who has pods or a lease here will ask.
            for leg in self._deps.converger.last.plan.legs.values():
                sockets.open(leg.uid)
            before, turn = turn, self._deps.view.next_turn(turn, IDLE_S)
            # A request may have done already what woke this thread.
            self._deps.converger.run(self._deps.view.state, again=turn == before)
            self._followed_s = time.monotonic()

    def _release(self) -> None:
        missing: dict[int, ended.Missing] = {}
        while True:
            time.sleep(RELEASE_S)
            snapshot = self._deps.view.snapshot
            if not snapshot.state.jobs:
                missing = {}
                continue
            try:
                holding = jobs_on_nodes(self._settings.slurm_prefix)
                judged = ended.judge(snapshot.jobs(), holding, missing, time.monotonic())
                missing = dict(judged.missing)
                if judged.ended:
                    self._store.release(judged.ended, snapshot)
                if names := renamed(snapshot.state.jobs, holding):
                    self._store.rename(names, snapshot)
            except (SlurmError, EtcdError, StoreError, StoredError) as error:
                _log.warning("nothing is given back now: %s", error)

    def _look_at_space(self) -> None:
        while True:
            try:
                self._store.look_at_space()
            except EtcdError as error:
                _log.warning("etcd's space is not known: %s", error)
            time.sleep(SPACE_S)

    def _leases(self) -> None:
        idle = leases.Idle(self._settings.lease_idle_s)
        while True:
            time.sleep(LEASES_S)
            node = self._settings.node
            leased = [uid for uid, where in self._deps.view.snapshot.state.leases if where == node]
            for uid in idle.judge(leased, leases.users_here(), time.monotonic()):
                try:
                    self._store.drop_lease(uid, node)
                except (EtcdError, StoreError, StoredError) as error:
                    _log.warning("the lease of uid %d stays for now: %s", uid, error)

    def _beat(self) -> None:
        times = heartbeats.Times(self._settings.lease_ttl_s)
        pulse = heartbeats.Pulse(self._store.heartbeats, self._settings.node, times)
        problem = ""
        while True:
            pause_s = times.beat_s
            try:
                pulse.beat()
                problem = ""
            except EtcdError as error:
                if str(error) != problem:
                    _log.warning("etcd has not heard of this node now: %s", error)
                problem, pause_s = str(error), times.retry_s
            # Nodes that began together need not go on together.
            time.sleep(pause_s * random.uniform(0.8, 1))  # noqa: S311 -- no secret

    def _silence(self) -> None:
        times = heartbeats.Times(self._settings.lease_ttl_s)
        silence = heartbeats.Silence(times.missing_s)
        while True:
            time.sleep(times.look_s)
            try:
                self._end_silent(silence)
            except (EtcdError, StoreError, StoredError) as error:
                _log.warning("which nodes live is not known now: %s", error)
                silence.forget()

    def _end_silent(self, silence: heartbeats.Silence) -> None:
        """End the leases and login pods of the nodes that are due."""
        tied = heartbeats.tied(self._deps.view.snapshot.state)
        if not tied:
            silence.forget()
            return
        for node in silence.judge(tied, self._store.heartbeats.read(), time.monotonic()):
            try:
                count = self._store.end_silent(node)
            except HeardError as error:
                _log.warning("%s", error)
                continue
            why = "%s has not been heard of for %d s: %d leases and login pods there are ended"
            _log.warning(why, node, self._settings.lease_ttl_s, count)


def reload_dns() -> None:
    """Have CoreDNS read its configuration again, or start it.

    Raises:
        OSError: systemd did not take the order.
    """
    try:
        run(["systemctl", "--no-block", "reload-or-restart", "isthmus-dns.service"], timeout_s=10)
    except ProcessError as error:
        raise OSError(str(error)) from error


def start(settings: Settings) -> Daemon:
    """Join the pod networks: read all of etcd, and publish this node."""
    if settings.ipv6 and not has_ipv6():
        raise SettingsError("ipv6_range is set, and this host's kernel has no IPv6; boot it without ipv6.disable=1")
    store = Store(Etcd(settings.etcd), Keys(settings.cluster), settings.ranges)
    kernel = Kernel()
    carried = kernel.underlay(settings.address).mtu
    encryptor = encryption.connect(settings.encryption, settings.node, settings.address, carried, store.encryption)
    member = settings.member(carried)
    _announce(store, member)
    if not settings.lease_ttl_s:
        store.heartbeats.withdraw(settings.node)
    view = View(store.load())
    names = NodeNames(settings.dns, reload_dns, settings.resolver)
    shared = tuple(each.network for each in settings.shared.values())
    wireguard_port = settings.encryption.port if settings.encryption else 0
    rules = read_rules(
        settings.ranges.pods,
        settings.rules,
        shared,
        settings.logins,
        settings.gateways,
        wireguard_port,
        settings.ipv6,
    )
    networks: dict[Driver, Network] = {}
    pods = partial(_shared_pods, networks)
    outside = _outside(settings)
    packet_filter = NodeFilter(settings.node, rules)
    beginning = settings.beginning
    converger = Converger(settings.node, kernel, packet_filter, names, shared=pods, outside=outside, ipv6=beginning)
    context = NodeContext(settings.node, store, view, converger, names)
    networks |= {
        driver: connect(driver, context, settings.shared.get(driver)) for driver in (Driver.PRIVATE, *settings.shared)
    }
    services = PodServices(settings.services)
    plugin = Watcher(settings.slurm_prefix / "sbin/slurmd")
    logins = None
    if settings.logins and settings.logins.is_here:
        logins = LoginPods(settings.node, settings.logins, store, view, networks[Driver.PRIVATE], services)
    deps = Dependencies(
        settings.node, store, view, converger, networks, rules, settings.dns.domain, services, plugin, logins, encryptor
    )
    return Daemon(settings, store, deps, _gateway(settings, member, deps, outside))


def _announce(store: Store, member: Node) -> None:
    """Make this node known; a gateway as none, as long as others could not read that it is one."""
    try:
        store.announce(member)
    except OlderMembersError as error:
        _log.warning("this node is no gateway yet: %s", error)
        store.announce(replace(member, gateway=False))


def _outside(settings: Settings) -> OutsideAddresses | None:
    if settings.gateways is None or not settings.gateways.is_here:
        return None
    return OutsideAddresses(settings.node, settings.gateways.addresses, HeldAddresses())


def _gateway(settings: Settings, member: Node, deps: Dependencies, outside: OutsideAddresses | None) -> Gateway | None:
    if outside is None:
        return None
    # It must not wait for a member of etcd as long as others may.
    election = Election(
        Etcd(replace(settings.etcd, timeout_s=CALL_S, pauses_s=PAUSES_S)), Keys(settings.cluster), settings.node
    )

    def is_able() -> bool:
        return not deps.converger.last.errors.keys() & SHARED_ERRORS

    return Gateway(member, election, deps.store, deps.view, outside, is_able)


def _shared_pods(networks: Mapping[Driver, Network]) -> dict[int, SharedPod]:
    """Return the pods of shared networks, those among them that an earlier daemon made."""
    return {job: pod for network in networks.values() for job, pod in network.shared_pods().items()}


def main() -> int:
    """Run until a thread ends; exit status 1, so that systemd starts it again, 2 for settings that cannot be used."""
    logging.basicConfig(level=os.environ.get("ISTHMUS_LOG", "INFO"), format="%(levelname)s %(message)s")
    sys.setswitchinterval(SWITCH_S)
    try:
        start(network_settings.read()).run()
    except SettingsError as error:
        print(error, file=sys.stderr)
        return 2
    except (EtcdError, StoredError, StoreError, NetlinkError, WireGuardError, NftError, CniError, OSError) as error:
        _log.error("%s", error)
    return 1


if __name__ == "__main__":
    sys.exit(main())
