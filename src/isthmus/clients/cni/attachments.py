"""The pods on this node of a network that CNI plugins make: namespaces of ours, connected and disconnected by them.

What a plugin was given and answered must be kept for CHECK and DEL, so each whole pod has a record, which is written
last. A namespace comes first and goes last: what is half made is always found by its name, and made whole, or taken
away, by the same calls. Namespaces, records and what the plugins remember all lie below /run and end with the machine.

Where the list of plugins is not ours (`Means`), it may change at any time, and plugins may remember what they gave for
longer than the machine runs. Then a record outlives the machine, too, and is there before the plugins are called: DEL
comes with the list that ADD had, whatever happened meanwhile.

Calls for one job come one at a time. All calls come from the node's own network namespace.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import closing, suppress
from dataclasses import asdict, astuple, dataclass
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any, Protocol

from isthmus.clients.cni.plugins import Attachment, CniError, NetworkList, Plugins, Result, parse_list
from isthmus.clients.cni.results import Place
from isthmus.clients.netlink import namespaces
from isthmus.clients.netlink.observe import look
from isthmus.model.network import Driver
from isthmus.model.node_network import POD_INTERFACE, SharedPod, shared_prefix
from isthmus.support import durable

_RECORD = re.compile(r"(\d+)\.json")


class Means(Protocol):
    """What a driver's pods are connected with."""

    @property
    def is_noted_first(self) -> bool:
        """Whether a record is there before the plugins are called."""

    def list(self) -> NetworkList:
        """Return what a pod is connected with from now on.

        Raises:
            CniError: it cannot be used.
        """

    def place(self, result: Result) -> Place | None:
        """Return where the plugins put a pod; None where that follows from the result alone.

        Raises:
            CniError: it is nowhere that a pod can be.
        """


@dataclass(frozen=True, slots=True)
class Ours:
    """A list that the deployer wrote; it and all it names end with the machine."""

    network: NetworkList
    is_noted_first: bool = False

    def list(self) -> NetworkList:
        """See Means."""
        return self.network

    def place(self, result: Result) -> None:
        """See Means."""


@dataclass(frozen=True, slots=True)
class Found:
    """What a node has.

    Attributes:
        pods: whole ones, by job id.
        broken: jobs of which only a part is there.
    """

    pods: Mapping[int, SharedPod]
    broken: frozenset[int]


@dataclass(frozen=True, slots=True)
class _Record:
    """What is known of a whole pod: what it was connected with, and how."""

    uid: int
    network: NetworkList
    result: Result
    place: Place | None = None

    def pod(self, driver: Driver, job: int) -> SharedPod | None:
        if self.place:
            return SharedPod(driver, job, self.uid, *astuple(self.place))
        given = [(address.ip, gateway) for address, gateway in self.result.addresses if gateway]
        return SharedPod(driver, job, self.uid, *given[0]) if given else None


class Attachments:
    """Makes and finds pods.

    Args:
        driver: whose network it is; namespaces are named after it.
        means: what pods are connected with.
        plugins: the programs.
        records: folder of ours; made here.
        folder: where namespaces have their names.
    """

    def __init__(
        self,
        driver: Driver,
        means: Means,
        plugins: Plugins,
        records: Path,
        folder: Path = namespaces.RUN,
    ) -> None:
        self._driver = driver
        self._prefix = shared_prefix(driver)
        self._ours = re.compile(rf"{re.escape(self._prefix)}(\d+)")
        self._means = means
        self._plugins = plugins
        self._records = records
        self._folder = folder

    def observe(self) -> Found:
        """Return what exists, from records and names of namespaces; plugins are not asked."""
        named = {int(found[1]) for name in namespaces.names(self._folder) if (found := self._ours.fullmatch(name))}
        noted = {int(found[1]) for name in namespaces.names(self._records) if (found := _RECORD.fullmatch(name))}
        pods = {job: pod for job in named & noted if (pod := self._whole(job))}
        return Found(pods, frozenset((named | noted) - pods.keys()))

    def add(self, job: int, uid: int) -> SharedPod:
        """Make a pod; of one that is there the namespace is kept, for processes may be in it, and connected again.

        Raises:
            CniError: a plugin refused.
            NetlinkError: the namespace could not be made.
            OSError: the record could not be written.
        """
        network, path = self._means.list(), self._namespace(job)
        if namespaces.exists(path):
            self._disconnect(job)
        else:
            self.remove(job)
            namespaces.create(path, namespaces.POD_SYSCTLS).close()
        if self._means.is_noted_first:
            self._write(job, _Record(uid, network, Result({})))
        loopback = NetworkList(network.name, network.version, ({"type": "loopback"},))
        self._plugins.add(loopback, self._attachment(job, "lo"))
        result = self._plugins.add(network, self._attachment(job))
        try:
            record = _Record(uid, network, result, self._means.place(result))
            pod = record.pod(self._driver, job)
            if pod is None:
                raise CniError(f"the plugins of network {network.name} gave no IPv4 address with a gateway")
            if record.place:
                self._look_inside(job, pod)
        except CniError as error:
            if self._means.is_noted_first:
                self._undo(network, job, error)
            raise
        self._write(job, record)
        return pod

    def _undo(self, network: NetworkList, job: int, error: CniError) -> None:
        """Disconnect a pod whose answer was refused; plugins that read it would refuse it, too."""
        try:
            self._plugins.delete(network, self._attachment(job))
        except CniError as second:
            error.add_note(f"nor could it be undone: {second}")

    def check(self, job: int) -> None:
        """Ask plugins and kernel whether a pod is as they left it: some plugins' CHECK accepts anything.

        Raises:
            CniError: it is not.
            NetlinkError: the kernel did not answer.
        """
        record = self._read(job)
        if record is None:
            raise CniError(f"nothing is known of how job {job} was connected")
        self._plugins.check(record.network, self._attachment(job), record.result)
        self._look_inside(job, record.pod(self._driver, job))

    def _look_inside(self, job: int, pod: SharedPod | None) -> None:
        with closing(namespaces.enter(self._namespace(job))) as wire:
            seen = look(wire)
        eth = seen.up(POD_INTERFACE)
        if eth is None or pod is None or pod.address not in seen.addresses.get(eth.index, []):
            raise CniError(f"{self._prefix}{job} has lost its {POD_INTERFACE}, or the address of it")

    def remove(self, job: int) -> None:
        """Take a pod away; one that is gone is fine.

        Raises:
            CniError: a plugin refused; what is left is found as broken.
            NetlinkError: the namespace's name could not be removed.
        """
        self._disconnect(job)
        namespaces.remove(self._namespace(job))

    def collect(self) -> None:
        """Have plugins of a list that can (CNI 1.1) give back what no pod here has any more.

        Raises:
            CniError: a plugin refused, or the list cannot be used.
        """
        found = self.observe()
        self._plugins.collect(self._means.list(), map(self._attachment, sorted(found.pods.keys() | found.broken)))

    def _disconnect(self, job: int) -> None:
        record = self._read(job)
        # Without a record that comes first no plugin was called.
        if record or not self._means.is_noted_first or self._record(job).exists():
            network, result = (record.network, record.result) if record else (self._means.list(), None)
            self._plugins.delete(network, self._attachment(job), result)
        self._record(job).unlink(missing_ok=True)

    def _whole(self, job: int) -> SharedPod | None:
        record = self._read(job)
        return record.pod(self._driver, job) if record and namespaces.exists(self._namespace(job)) else None

    def _attachment(self, job: int, interface: str = POD_INTERFACE) -> Attachment:
        path = self._namespace(job)
        return Attachment(path.name, str(path) if namespaces.exists(path) else "", interface)

    def _namespace(self, job: int) -> Path:
        return self._folder / f"{self._prefix}{job}"

    def _record(self, job: int) -> Path:
        return self._records / f"{job}.json"

    def _write(self, job: int, record: _Record) -> None:
        document = {"uid": record.uid, "network": record.network.written(), "result": record.result.raw}
        if record.place:
            document["place"] = {name: str(value) for name, value in asdict(record.place).items()}
        self._records.mkdir(mode=0o700, parents=True, exist_ok=True)
        durable.write(self._record(job), json.dumps(document), mode=0o600)

    def _read(self, job: int) -> _Record | None:
        """Return a record; one that cannot be used counts as none: the pod is then connected again."""
        with suppress(FileNotFoundError, ValueError, KeyError, TypeError, CniError):
            document: dict[str, Any] = json.loads(self._record(job).read_text(encoding="utf-8"))
            network = parse_list(json.dumps(document["network"]), self._record(job).name)
            record = _Record(int(document["uid"]), network, Result(document["result"]), _place(document.get("place")))
            # One that makes no sense is none; one without addresses was never completed.
            return record if record.result.addresses or self._means.is_noted_first else None
        return None


def _place(raw: Mapping[str, str] | None) -> Place | None:
    if not raw:
        return None
    return Place(IPv4Address(raw["address"]), IPv4Address(raw["gateway"]), raw["end"], raw["leg"])
