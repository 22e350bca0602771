"""What the node daemon is told by the admin: /etc/isthmus/network.json, written by the role `network`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path
from typing import Any

from isthmus.clients.etcd.store import Access
from isthmus.model.network import Node, Ranges
from isthmus.model.node_network import VXLAN_OVERHEAD
from isthmus.network.api.client import ROOT_SOCKET, SOCKET
from isthmus.network.dns.hostresolver import HostResolver
from isthmus.network.dns.records import DnsSettings
from isthmus.network.drivers.flannel_rules import Backend, Flannel

SCHEMA = 1
FILE = Path("/etc/isthmus/network.json")


class SettingsError(Exception):
    """The file cannot be used; the message names it, the field, and the remedy."""


@dataclass(frozen=True, slots=True)
class FlannelSettings:
    """Flannel's network; flanneld itself is another service.

    Attributes:
        network: its range, and how packets come to other nodes.
        plugins: folder of the CNI plugins.
        list: their list, a .conflist.
        records: folder for what plugins were given and answered; ends with the machine, as the pods do.
    """

    network: Flannel
    plugins: Path
    list: Path
    records: Path = Path("/run/isthmus/flannel")


@dataclass(frozen=True, slots=True)
class Settings:
    """The daemon's settings.

    Attributes:
        cluster: the cluster's identity: two clusters may share an etcd.
        node: this node's name, as Slurm has it.
        address: this node's on the cluster's network: the VTEP.
        mtu: wished for pods, bytes; 0 for what the node carries.
        ranges: what users' networks are cut from.
        etcd: how the cluster's etcd is reached.
        releases: whether this daemon gives the addresses of ended jobs back; one in the cluster does.
        slurm_prefix: where Slurm's commands are.
        dns: names of pods.
        resolver: by what this host's own programs resolve them.
        rules: what the packet filter is made of, as `rules.Settings` reads it.
        socket: where everybody's requests come in.
        root_socket: where root's do.
        services: the addresses of Services in users' clusters.
        lease_idle_s: how long after a user's last process here his lease is dropped.
        flannel: None where jobs cannot have that network.
    """

    cluster: str
    node: str
    address: IPv4Address
    mtu: int
    ranges: Ranges
    etcd: Access
    releases: bool
    slurm_prefix: Path
    dns: DnsSettings
    resolver: HostResolver
    rules: Mapping[str, Any]
    services: IPv4Network
    socket: Path = SOCKET
    root_socket: Path = ROOT_SOCKET
    lease_idle_s: float = 3600
    flannel: FlannelSettings | None = None

    @property
    def prefix(self) -> str:
        """Where in etcd this cluster's pod networks are."""
        return f"/isthmus/{self.cluster}/network/"

    def member(self, carried: int) -> Node:
        """Return this node as other nodes shall know it.

        Args:
            carried: MTU of the interface that has the node's address.
        """
        return Node(self.node, self.address, min(carried, self.mtu + VXLAN_OVERHEAD) if self.mtu else carried)


def read(path: Path = FILE) -> Settings:
    """Read the settings.

    Raises:
        SettingsError: no such file, no JSON, a field is missing or of the wrong kind.
    """
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
        if told["schema"] != SCHEMA:
            raise SettingsError(
                f"{path}: schema {told['schema']}, this version reads {SCHEMA}; run playbooks/network.yml"
            )
        return _settings(told)
    except KeyError as error:
        raise SettingsError(f"{path}: {error} is missing; run playbooks/network.yml") from error
    except (OSError, ValueError, TypeError) as error:
        raise SettingsError(f"{path}: {error}; run playbooks/network.yml") from error


def _settings(told: Mapping[str, Any]) -> Settings:
    dns, flannel = told["dns"], _flannel(told["flannel"])
    shared = flannel.network.range if flannel else None
    return Settings(
        cluster=told["cluster"],
        node=told["node"],
        address=IPv4Address(told["address"]),
        mtu=int(told["mtu"]),
        ranges=_ranges(told["ranges"]),
        etcd=_access(told["etcd"]),
        releases=told["releases"],
        slurm_prefix=Path(told["slurm_prefix"]),
        dns=DnsSettings(dns["domain"], tuple(map(IPv4Address, dns["upstreams"])), tuple(dns["search"]), flannel=shared),
        resolver=HostResolver(dns["host"]),
        rules=told["rules"],
        services=IPv4Network(told["services"]),
        lease_idle_s=float(told["lease_idle_s"]),
        flannel=flannel,
    )


def _flannel(told: Mapping[str, Any]) -> FlannelSettings | None:
    if not told:
        return None
    network = Flannel(IPv4Network(told["range"]), Backend(told["backend"]))
    return FlannelSettings(network, Path(told["plugins"]), Path(told["list"]))


def _ranges(told: Mapping[str, Any]) -> Ranges:
    return Ranges(IPv4Network(told["pods"]), told["block_prefix"], told["vni_first"], told["vni_last"])


def _access(told: Mapping[str, Any]) -> Access:
    password = Path(told["password_file"]).read_text(encoding="utf-8").strip()
    ca, certificate, key = (Path(told[name]) for name in ("ca", "certificate", "key"))
    return Access(tuple(told["endpoints"]), ca, certificate, key, told["user"], password)
