"""The node daemon's settings: /etc/isthmus/network.json, written by the role `network`."""

from __future__ import annotations

import json
import pwd
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv4Network, IPv6Network
from pathlib import Path
from typing import Any

from isthmus.clients.etcd.store import Access
from isthmus.model.network import Driver, Node, Ranges
from isthmus.model.networks.ipv6 import PREFIX_MAX, prefix
from isthmus.model.networks.wireguard import OVERHEAD
from isthmus.model.node_network import VXLAN_OVERHEAD
from isthmus.network.api.client import ROOT_SOCKET, SOCKET
from isthmus.network.dns.hostresolver import HostResolver
from isthmus.network.dns.records import DnsSettings
from isthmus.network.drivers.contract import SharedSettings
from isthmus.network.drivers.registry import NAMES, definition
from isthmus.network.encryption import settings as encryption
from isthmus.network.encryption.settings import EncryptionSettings
from isthmus.network.gateways import settings as gateway_settings
from isthmus.network.gateways.settings import Gateways
from isthmus.network.logins import numbers
from isthmus.network.logins.numbers import Logins

SCHEMA = 1
FILE = Path("/etc/isthmus/network.json")


class SettingsError(Exception):
    """The file cannot be used; the message names it, the field, and the remedy."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The daemon's settings.

    Attributes:
        cluster: the cluster's identity: two clusters may share an etcd.
        node: this node's name, as Slurm has it.
        address: this node's on the cluster's network: the VTEP.
        mtu: desired for pods, bytes; 0 for what the node carries.
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
        lease_idle_s: how long after a user's last process here their lease is dropped.
        lease_ttl_s: how long after a node was heard of its leases and login pods end; 0 for never.
        shared: of each driver with a network that all users share, where jobs can have it.
        logins: of login pods; None for a cluster without.
        gateways: of gateways; None for a cluster without.
        encryption: of that between nodes; None for a cluster without.
        ipv6: the range of IPv6 of private networks; None for a cluster without.
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
    lease_ttl_s: int = 0
    shared: Mapping[Driver, SharedSettings] = field(default_factory=dict)
    logins: Logins | None = None
    gateways: Gateways | None = None
    encryption: EncryptionSettings | None = None
    ipv6: IPv6Network | None = None

    @property
    def beginning(self) -> IPv6Network | None:
        """What IPv6 addresses of pods begin with; None without IPv6."""
        return prefix(self.ipv6) if self.ipv6 else None

    @property
    def prefix(self) -> str:
        """Where in etcd this cluster's pod networks are."""
        return f"/isthmus/{self.cluster}/network/"

    def member(self, carried: int) -> Node:
        """Return this node's record for the other nodes.

        Args:
            carried: MTU of the interface that has the node's address.
        """
        carried -= OVERHEAD if self.encryption else 0
        mtu = min(carried, self.mtu + VXLAN_OVERHEAD) if self.mtu else carried
        return Node(self.node, self.address, mtu, self.gateways is not None and self.gateways.is_here)


def read(path: Path = FILE) -> Settings:
    """Read the settings.

    Raises:
        SettingsError: no such file, no JSON, a field is missing or of the wrong kind.
    """
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
        if raw["schema"] != SCHEMA:
            raise SettingsError(
                f"{path}: schema {raw['schema']}, this version reads {SCHEMA}; run playbooks/network.yml"
            )
        return _settings(raw)
    except KeyError as error:
        raise SettingsError(f"{path}: {error} is missing; run playbooks/network.yml") from error
    except (OSError, ValueError, TypeError) as error:
        raise SettingsError(f"{path}: {error}; run playbooks/network.yml") from error


def _settings(raw: Mapping[str, Any]) -> Settings:
    dns, shared = raw["dns"], _shared(raw)
    ranges = {driver: each.network.range for driver, each in shared.items()}
    ipv6 = _ipv6(raw.get("ipv6_range"))
    begin = prefix(ipv6) if ipv6 else None
    upstreams = tuple(map(IPv4Address, dns["upstreams"]))
    return Settings(
        cluster=raw["cluster"],
        node=raw["node"],
        address=IPv4Address(raw["address"]),
        mtu=int(raw["mtu"]),
        ranges=_ranges(raw["ranges"]),
        etcd=_access(raw["etcd"]),
        releases=raw["releases"],
        slurm_prefix=Path(raw["slurm_prefix"]),
        dns=DnsSettings(dns["domain"], upstreams, tuple(dns["search"]), shared=ranges, ipv6=begin),
        resolver=HostResolver(dns["host"]),
        rules=raw["rules"],
        services=IPv4Network(raw["services"]),
        lease_idle_s=float(raw["lease_idle_s"]),
        lease_ttl_s=int(raw.get("lease_ttl_s", 0)),
        shared=shared,
        logins=_logins(raw.get("logins")),
        gateways=gateway_settings.read(raw["gateways"]) if raw.get("gateways") else None,
        encryption=encryption.read(raw.get("encryption")),
        ipv6=ipv6,
    )


def _ipv6(raw: str | None) -> IPv6Network | None:
    """Read the range; empty or absent where pods have none."""
    if not raw:
        return None
    found = IPv6Network(raw)
    if found.prefixlen > PREFIX_MAX:
        raise ValueError(f"ipv6_range {found} has no room for an IPv4 address behind it")
    return found


def _logins(raw: Mapping[str, Any] | None) -> Logins | None:
    """Read what login pods are like; empty or absent where the cluster has none."""
    return numbers.read(raw, pwd.getpwnam(raw["slurm_user"]).pw_uid) if raw else None


def _shared(raw: Mapping[str, Any]) -> dict[Driver, SharedSettings]:
    """Read what each driver has under its own name; empty or absent where the cluster has no such network."""
    readers = {driver: read for driver in NAMES if (read := definition(driver).read) and raw.get(driver)}
    return {driver: read(raw[driver]) for driver, read in readers.items()}


def _ranges(raw: Mapping[str, Any]) -> Ranges:
    return Ranges(IPv4Network(raw["pods"]), raw["block_prefix"], raw["vni_first"], raw["vni_last"])


def _access(raw: Mapping[str, Any]) -> Access:
    password = Path(raw["password_file"]).read_text(encoding="utf-8").strip()
    ca, certificate, key = (Path(raw[name]) for name in ("ca", "certificate", "key"))
    return Access(tuple(raw["endpoints"]), ca, certificate, key, raw["user"], password)
