"""The node's WireGuard device follows what nodes have published.

A pass compares device and routes with the records that are trusted, and changes what differs: a node that joins is one
more peer. It runs when a record changes, and now and then, for what others may have changed.

A new key is published first, and taken a moment later, when the others know it: their sessions begin again within a
round trip. Before that, packets wait in the kernels for at most that moment.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from ipaddress import IPv4Address
from threading import Condition, Event
from typing import Any

from isthmus.clients.etcd.store import CompactedError, DeniedError, EtcdError, Found, Watch
from isthmus.clients.netlink.wire import NetlinkError
from isthmus.clients.wireguard.device import Tunnel, WireGuardError
from isthmus.clients.wireguard.keys import KeyPair, new_pair
from isthmus.clients.wireguard.way import Way
from isthmus.model.networks.wireguard import Device, Encryption, Peer
from isthmus.network.encryption.identity import Authorities, Identity, IdentityError
from isthmus.network.encryption.records import Book, Records, Statement, certificate_of, decode, encode
from isthmus.network.encryption.settings import EncryptionSettings

# How often the device is looked at although no record changed, and how long after something failed.
LOOK_S, RETRY_S = 10.0, 2.0
# How long the others have to learn of a new key before it is used.
GRACE_S = 1.0
# WireGuard forgets a session after this.
SESSION_S = 180
# So many nodes are named.
SHOWN = 5
# Between two passes, whatever happens, and between two records of this node's.
PACE_S, PUBLISH_S = 0.2, 2.0
# Keys that were made at one moment are not all changed at one.
_SPREAD = 0.1

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Own:
    """This node.

    Attributes:
        name: as etcd has it.
        address: its own.
        mtu: of its device, bytes.
        identity: signs what it publishes.
    """

    name: str
    address: IPv4Address
    mtu: int
    identity: Identity = field(repr=False)


class Encryptor:
    """Encryption on this node; `follow` and `listen` are for a thread each, the rest for any.

    Args:
        own: this node.
        settings: the admin's.
        records: etcd's.
        authorities: say who a node is.
        tunnel: the device.
        way: VXLAN's to it.
        grace_s: between publishing a key and its use.
        publish_s: between two records of this node's.
        clock: seconds since the epoch.
    """

    def __init__(
        self,
        own: Own,
        settings: EncryptionSettings,
        records: Records,
        authorities: Authorities,
        tunnel: Tunnel,
        way: Way,
        grace_s: float = GRACE_S,
        publish_s: float = PUBLISH_S,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._own, self._settings, self._records, self._authorities = own, settings, records, authorities
        self._tunnel, self._way = tunnel, way
        self._grace_s, self._publish_s, self._clock = grace_s, publish_s, clock
        self._book = Book(records, authorities)
        self._known = False
        self._changed = Condition()
        self._closed = Event()
        self._watch: Watch | None = None
        self._turn = 0
        self._wanted = False
        self._published_s = 0.0
        self._spread = random.uniform(0, _SPREAD)  # noqa: S311 -- no secret
        self._peers: Mapping[str, Peer] = {}
        self._device = Device()
        self._error = "etcd was not read yet"

    def shut(self) -> None:
        """Let nothing leave in the clear, whatever comes later.

        Raises:
            NetlinkError: the kernel refused.
        """
        self._way.shut()

    def listen(self) -> None:
        """Take what nodes publish, until closed."""
        problem = ""
        while not self._closed.is_set():
            try:
                found = self._records.read()
                problem = ""
                self.take_all(found)
                self._watch = self._records.watch(found.revision)
                for changes in self._watch:
                    if changes.events:
                        self._take(partial(self._book.advance, changes))
            except CompactedError:
                continue
            except EtcdError as error:
                if str(error) != problem:
                    _log.warning("keys of nodes are not known now: %s", error)
                problem = str(error)
                if not self._known:
                    self._error = f"{error}{_GRANT if isinstance(error, DeniedError) else ''}"
                self._closed.wait(RETRY_S)

    def close(self) -> None:
        """End `listen` and `follow`; the device stays."""
        self._closed.set()
        if self._watch:
            self._watch.close()
        with self._changed:
            self._changed.notify_all()

    def take_all(self, found: Found) -> None:
        """Take all records as they were read."""
        self._take(partial(self._book.begin, found))

    def _take(self, work: Callable[[], None]) -> None:
        with self._changed:
            work()
            self._known = True
            self._turn += 1
            self._changed.notify_all()

    def follow(self) -> None:
        """Keep the device as it should be, until closed."""
        seen = 0
        while not self._closed.is_set():
            error = self.run()
            pause_s = RETRY_S if error else LOOK_S
            self._closed.wait(RETRY_S if error else PACE_S)
            with self._changed:
                self._changed.wait_for(partial(self._has_news, seen), pause_s)
                seen = self._turn

    def _has_news(self, seen: int) -> bool:
        return self._turn != seen or self._wanted or self._closed.is_set()

    def run(self) -> str:
        """Make a pass; return why it failed, empty where it did not."""
        try:
            with self._changed:
                known, trusted = self._known, self._book.trusted() if self._known else {}
            if known:
                self._pass(trusted)
            error = "" if known else self._error
        except (WireGuardError, NetlinkError, EtcdError, OSError) as failure:
            error = str(failure)
        if error and error != self._error:
            _log.warning("no encrypted way to other nodes: %s", error)
        with self._changed:
            self._error = error
            self._changed.notify_all()
        return error

    def _pass(self, trusted: dict[str, Statement]) -> None:
        self._way.shut()
        self._tunnel.make()
        self._way.prepare(self._own.mtu)
        device = self._tunnel.read() or Device()
        own = trusted.pop(self._own.name, None)
        if not device.public_key:
            device = self._begin(new_pair(), own, device, grace_s=0)
        elif self._is_due(own, device):
            device = self._begin(new_pair(), own, device, self._grace_s)
        elif self._needs_publishing(own, device) and time.monotonic() - self._published_s > self._publish_s:
            self._publish(device.public_key, own)
        self._connect(trusted, device)

    def _is_due(self, own: Statement | None, device: Device) -> bool:
        """Return whether another key is due: by age, by order, or because another node claims this one."""
        if self._wanted:
            return True
        if self._own.name in self._book.displaced:
            return time.monotonic() - self._published_s > self._publish_s
        if not self._settings.key_s or own is None or own.peer.public_key != device.public_key:
            return False
        return self._clock() - own.made_s > self._settings.key_s * (1 + self._spread)

    def _needs_publishing(self, own: Statement | None, device: Device) -> bool:
        wanted = Peer(device.public_key, self._own.address, self._settings.port)
        if own is None or own.peer != wanted:
            return True
        return certificate_of(self._book.texts.get(self._own.name, "")) != self._own.identity.certificate

    def _begin(self, pair: KeyPair, own: Statement | None, device: Device, grace_s: float) -> Device:
        self._publish(pair.public, own)
        time.sleep(grace_s)
        self._tunnel.set_key(pair.private, self._settings.port)
        with self._changed:
            self._wanted = False
        _log.info("this node has a new key: %s", pair.public)
        self._tunnel.wake(device.peers)
        return Device(pair.public, self._settings.port, device.peers, {})

    def _publish(self, key: str, own: Statement | None) -> None:
        """Write this node's record.

        Raises:
            WireGuardError: no other node would trust it.
        """
        if own and own.peer.public_key == key:
            made_s = own.made_s
        else:
            # A clock that was set back must not make a new key look older than the former one.
            made_s = max(int(self._clock()), own.made_s + 1 if own else 0)
        statement = Statement(self._own.name, Peer(key, self._own.address, self._settings.port), made_s)
        record = encode(statement, self._records.cluster, self._own.identity)
        try:
            decode(self._own.name, record, self._records.cluster, self._authorities)
        except IdentityError as error:
            raise WireGuardError(f"this node cannot say who it is: {error}; run playbooks/network.yml") from error
        self._records.publish(self._own.name, record)
        self._published_s = time.monotonic()

    def _connect(self, trusted: Mapping[str, Statement], device: Device) -> None:
        wanted = {each.peer.public_key: each.peer for each in trusted.values()}
        gone = device.peers.keys() - wanted.keys()
        new = [peer for key, peer in wanted.items() if device.peers.get(key) != peer]
        if gone or new:
            self._tunnel.change(gone, new)
        to = frozenset(peer.address for peer in wanted.values())
        led = self._way.read().peers
        if led != to:
            self._way.change(led - to, to - led)
        self._device = Device(device.public_key, device.port, wanted, device.handshakes)
        with self._changed:
            self._peers = {node: each.peer for node, each in trusted.items()}
            self._changed.notify_all()

    def rekey(self) -> None:
        """Have another key made, soon."""
        with self._changed:
            self._wanted = True
            self._changed.notify_all()

    def wait_for(self, nodes: Mapping[str, IPv4Address], timeout_s: float) -> str:
        """Return why packets do not get to some nodes, empty as soon as they do.

        Args:
            nodes: name -> address.
            timeout_s: how long to wait for that.
        """
        with self._changed:
            self._changed.wait_for(lambda: not self._error and not self._lacking(nodes), timeout_s)
            error, lacking = self._error, self._lacking(nodes)
        if error or not lacking:
            return error
        named = "; ".join(f"{node}: {why}" for node, why in sorted(lacking.items())[:SHOWN])
        return f"no encrypted way to {len(lacking)} of the nodes ({named}); run playbooks/network.yml with all of them"

    def _lacking(self, nodes: Mapping[str, IPv4Address]) -> dict[str, str]:
        found: dict[str, str] = {}
        for node, address in nodes.items():
            peer = self._peers.get(node)
            if node == self._own.name or (peer and peer.address == address):
                continue
            found[node] = "its key is for another address" if peer else self._book.refused.get(node, _NO_KEY)
        return found

    def status(self, nodes: Mapping[str, IPv4Address]) -> dict[str, Any]:
        """Return what `isthmus network status` shows; `nodes` are all members."""
        with self._changed:
            device, peers, lacking = self._device, len(self._peers), self._lacking(nodes)
        return {
            "kind": Encryption.WIREGUARD,
            "program": self._settings.program,
            "public_key": device.public_key,
            "peers": peers,
            "sessions": sum(1 for at_s in device.handshakes.values() if self._clock() - at_s < SESSION_S),
            "not_reached": " ".join(sorted(lacking)[:SHOWN]) + (" ..." if len(lacking) > SHOWN else ""),
        }


_NO_KEY = "it has published no key"
_GRANT = "; etcd_users must let networkd write below wireguard/: run playbooks/network.yml"
