"""A WireGuard device, its way and etcd's records, as strict as the real ones."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from ipaddress import IPv4Address

from isthmus.clients.etcd.store import Entry, EtcdError, Found
from isthmus.clients.wireguard.device import WireGuardError
from isthmus.clients.wireguard.keys import public_key
from isthmus.clients.wireguard.way import Seen
from isthmus.model.networks.wireguard import Device, Peer
from isthmus.network.encryption.records import Records


class FakeTunnel:
    """A device that cannot be made while `why` says so."""

    def __init__(self) -> None:
        self.device: Device | None = None
        self.privates: list[bytes] = []
        self.woken: list[str] = []
        self.changes: list[tuple[set[str], set[str]]] = []
        self.why = ""

    def read(self) -> Device | None:
        return self.device

    def make(self) -> None:
        if self.why:
            raise WireGuardError(self.why)
        self.device = self.device or Device()

    def set_key(self, private: bytes, port: int) -> None:
        self.privates.append(private)
        self.device = replace(self._there(), public_key=public_key(private), port=port)

    def change(self, gone: Iterable[str], new: Iterable[Peer]) -> None:
        added = {peer.public_key: peer for peer in new}
        left = set(gone)
        assert left <= self._there().peers.keys()
        kept = {key: peer for key, peer in self._there().peers.items() if key not in left}
        self.changes.append((left, set(added)))
        self.device = replace(self._there(), peers=kept | added)

    def wake(self, keys: Iterable[str]) -> None:
        self.woken = list(keys)
        assert set(self.woken) <= self._there().peers.keys()

    def close(self) -> None:
        pass

    def _there(self) -> Device:
        assert self.device is not None
        return self.device


class FakeWay:
    """Routes that nothing leaves by before they are shut."""

    def __init__(self) -> None:
        self.seen = Seen()
        self.mtu = 0

    def shut(self) -> None:
        self.seen = replace(self.seen, closed=True)

    def prepare(self, mtu: int) -> None:
        self.mtu = mtu

    def read(self) -> Seen:
        return self.seen

    def change(self, gone: Iterable[IPv4Address], new: Iterable[IPv4Address]) -> None:
        assert self.seen.closed
        self.seen = replace(self.seen, peers=self.seen.peers - set(gone) | set(new))


class FakeRecords(Records):
    """Records in memory, and which were written."""

    def __init__(self, cluster: str) -> None:
        super().__init__(None, cluster)  # type: ignore[arg-type]
        self.entries: dict[str, tuple[str, int]] = {}
        self.published: list[str] = []
        self.is_down = False
        self._revision = 0

    def read(self) -> Found:
        found = {self.prefix + node: Entry(self.prefix + node, *entry) for node, entry in self.entries.items()}
        return Found(found, self._revision)

    def write(self, node: str, record: str) -> None:
        self._revision += 1
        self.entries[node] = record, self._revision

    def publish(self, node: str, record: str) -> None:
        if self.is_down:
            raise EtcdError("etcd is down")
        self.published.append(node)
        self.write(node, record)
