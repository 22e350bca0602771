"""Machines in namespaces with an administrator's list of CNI plugins, which are Debian's, and the packet filter."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path
from typing import Any

from isthmus.clients import nftables
from isthmus.clients.cni import admin
from isthmus.clients.cni.admin import Site
from isthmus.clients.cni.attachments import Attachments
from isthmus.clients.cni.lists import AdminList
from isthmus.clients.cni.results import Expected
from isthmus.model.network import Attachment, Driver, Job, Node, State, User
from isthmus.model.networks.cni import PLUGINS
from isthmus.model.node_network import NodePlan, SharedPod, shared_prefix
from isthmus.network.drivers.attached import Outcome
from isthmus.network.drivers.cni.network import CniConverger
from isthmus.network.drivers.cni.rules import Cni
from isthmus.network.node import rules
from tests.support.networks.namespaces import Namespace, Nodes
from tests.support.networks.pod_networks import ALICE, BOB, DENIED, METADATA, OPEN, sysctl
from tests.support.networks.pod_networks import SETTINGS as PRIVATE

RANGE = IPv4Network("10.180.0.0/16")
MEMBERS = ("n1", "n2")
# Ways to connect: a shape, and the interface that pods are behind.
INTERFACES = {"bridge": "cni0", "ptp": "veth*"}
USERS = {uid: User(uid, f"u{uid}", uid) for uid in (ALICE, BOB)}


def subnet(name: str) -> IPv4Network:
    """Return the range of a machine's pods."""
    return IPv4Network(f"10.180.{name.removeprefix('n')}.0/24")


def plugin_list(shape: str, machine: str, folder: Path, **changes: Any) -> dict[str, Any]:
    """Return a list as an administrator writes it for a machine.

    Args:
        shape: bridge or ptp.
        machine: whose it is.
        folder: where host-local keeps what it gave.
        changes: of the head.
    """
    ipam: dict[str, Any] = {
        "type": "host-local",
        "dataDir": str(folder / machine / "host-local"),
        "ranges": [[{"subnet": str(subnet(machine))}]],
    }
    if shape == "ptp":
        first: dict[str, Any] = {"type": "ptp"}
        ipam["routes"] = [{"dst": "0.0.0.0/0"}]
    else:
        first = {"type": "bridge", "bridge": "cni0", "isDefaultGateway": True}
    chained = {"type": "portmap", "capabilities": {"portMappings": True}}
    return {"cniVersion": "1.0.0", "name": "site", "plugins": [{**first, "ipam": ipam}, chained], **changes}


@dataclass
class CniNodes:
    """Two machines whose ways to one another's pods the site made."""

    stack: ExitStack
    folder: Path
    shape: str
    plugins: Path = Path(PLUGINS)
    interface: str = ""
    state: State = field(default_factory=State)

    def __post_init__(self) -> None:
        """Make the machines."""
        self.interface = self.interface or INTERFACES[self.shape]
        self.nodes = Nodes.of(self.stack, *MEMBERS)
        outside = self.nodes.add("outside")
        for address in (OPEN, DENIED, METADATA):
            outside.ip(f"addr add {address}/32 dev lo")
        self.state = State({name: Node(name, self.nodes.address(name)) for name in MEMBERS}, USERS)
        self.settings = replace(PRIVATE, pods=IPv4Network("10.64.0.0/11"), shared=(Cni(RANGE, self.interface),))
        for name in MEMBERS:
            place = self.nodes.places[name]
            sysctl(place, "ipv4/ip_forward", "1")
            place.ip(f"route add default via {self.nodes.address('outside')}")
            (other,) = set(MEMBERS) - {name}
            place.ip(f"route add {subnet(other)} via {self.nodes.address(other)}")
            (self.folder / name).mkdir()
            self.write(name, plugin_list(self.shape, name, self.folder))

    def write(self, name: str, document: Mapping[str, Any]) -> None:
        """Write a machine's list."""
        path = self.folder / name / "10-site.conflist"
        path.write_text(json.dumps(document))
        path.chmod(0o644)

    def attachments(self, name: str) -> Attachments:
        """Return what makes pods on a machine, as each daemon that starts has it."""
        admins = AdminList(self.folder / name, "10-site.conflist", self.plugins)
        return admin.attachments(Site(admins, Expected(RANGE, self.interface)), self.folder / name / "records")

    def daemon(self, name: str) -> CniConverger:
        """Return a daemon that starts; what an earlier one made is its own."""
        made: CniConverger = self.nodes.places[name].do(
            lambda: CniConverger(name, self.attachments(name), self._publish)
        )
        return made

    def run(self, name: str, *jobs: Job, daemon: CniConverger | None = None) -> Outcome:
        """Make a pass over a machine that should have these jobs, and follow it with rules."""
        self.state = replace(self.state, jobs={job.id: job for job in jobs})
        converger = daemon or self.daemon(name)
        outcome: Outcome = self.nodes.places[name].do(converger.run, lambda: self.state)
        plan = NodePlan(shared=outcome.pods)
        wanted = rules.elements(plan, self.state, name, self.settings)
        self.nodes.places[name].do(nftables.apply, rules.base(self.settings) + rules.change({}, wanted))
        return outcome

    def made(self, name: str, *jobs: Job) -> dict[int, SharedPod]:
        """Return the pods of a pass without errors."""
        outcome = self.run(name, *jobs)
        assert outcome.errors == {}
        return dict(outcome.pods)

    def _publish(self, each: Attachment) -> None:
        self.state = replace(self.state, attachments={**self.state.attachments, (each.job, each.node): each})

    def pod(self, name: str, job: int) -> Namespace:
        """Enter a pod."""
        return self.nodes.pod(name, job, shared_prefix(Driver.CNI))

    def given(self, name: str) -> set[IPv4Address]:
        """Return what host-local has given away on a machine."""
        folder = self.folder / name / "host-local/site"
        return {IPv4Address(path.name) for path in folder.glob("*.*.*.*")}


def job(number: int, uid: int = ALICE, nodes: tuple[str, ...] = MEMBERS) -> Job:
    """Return a job with this network."""
    return Job(number, uid, "run", Driver.CNI, nodes, ())
