"""Settings of an OpenStack cloud, parsed from the role's variables."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network
from typing import Any

from isthmus.filters.errors import InputError
from isthmus.filters.provider.nodes import Kind as NodeKind
from isthmus.filters.provider.nodes import node_kinds
from isthmus.filters.suggest import check_keys, unknown

# Neutron's older releases take 60 characters for a tag or a mark: isthmus.NAME.ID.
NAME_MAX = 40
# Settings that a kind of node may override.
KIND_KEYS = ("flavor", "image", "boot_gib", "volume_type", "availability_zone")
_GIB = ("home_gib", "boot_gib")


@dataclass(frozen=True)
class Machine:
    """The resources of a kind of node."""

    flavor: str
    image: str
    boot_gib: int
    volume_type: str
    availability_zone: str


@dataclass(frozen=True)
class Settings:
    """All settings.

    Attributes:
        cluster: its name, the prefix of all names.
        machines: kind of node -> machine.
        spread: nodes that must be on different hypervisors.
        external: external network; "" for nodes that are reached directly.
        login_sources: networks that may reach the login nodes' SSH.
        pod_ranges: networks of pods.
        home_gib: size of the shared home's volume at the controller; 0 without.
        image_file: disk of a node's image to upload, with its digest; "" for the cloud's own images.
        public_key: of the deployer.
    """

    cluster: str
    kinds: Sequence[NodeKind]
    machines: Mapping[str, Machine]
    spread: Sequence[str]
    spread_policy: str
    cidr: IPv4Network
    dns: Sequence[str]
    dhcp: bool
    external: str
    login_sources: Sequence[str]
    pod_ranges: Sequence[str]
    home_gib: int
    image_file: str
    image_digest: str
    public_key: str
    timeout_s: int

    @property
    def entry(self) -> str:
        """The node with the floating IP: the first login node, else the controller."""
        ordered = sorted(self.kinds, key=lambda kind: ("login", "controller", "compute").index(kind.part))
        return next(node for kind in ordered for node in kind.nodes)

    @property
    def controller(self) -> str:
        """The first controller."""
        return next(node for kind in self.kinds if kind.part == "controller" for node in kind.nodes)

    @property
    def cloud_nodes(self) -> list[str]:
        """Nodes that Slurm starts and deletes."""
        return [node for kind in self.kinds if kind.cloud for node in kind.nodes]

    def name(self, of: str) -> str:
        """Return the name of one of the cluster's resources."""
        return f"{self.cluster}-{of}"


def read(given: Mapping[str, Any]) -> Settings:
    """Parse the variables of role provider_openstack, without their prefix.

    Raises:
        InputError: for the first one that is wrong.
    """
    cluster = str(given["cluster"])
    if len(cluster) > NAME_MAX:
        raise InputError(f"cluster_name has {len(cluster)} characters", f"OpenStack's marks leave room for {NAME_MAX}")
    kinds = node_kinds(given["nodes"])
    for key in _GIB:
        _size(key, given[key])
    file, digest = str(given["image_file"]), str(given["image_digest"])
    own_image = f"isthmus-node-{digest[:16]}" if file else ""
    settings = Settings(
        cluster=cluster,
        kinds=kinds,
        machines=_machines(given, kinds, own_image),
        spread=list(given["spread"]),
        spread_policy=str(given["spread_policy"]),
        cidr=_network("cidr", given["cidr"]),
        dns=[str(one) for one in given["dns"]],
        dhcp=bool(given["dhcp"]),
        external=str(given["external"]),
        login_sources=[str(_network("login_sources", one)) for one in given["login_sources"]],
        pod_ranges=[str(_network("pod_ranges", one)) for one in given["pod_ranges"]],
        home_gib=int(given["home_gib"]),
        image_file=file,
        image_digest=digest,
        public_key=str(given["public_key"]).strip(),
        timeout_s=int(given["timeout_s"]),
    )
    _refuse_overlaps(settings)
    for kind in kinds:
        kind.addresses(settings.cidr)
    return settings


def _machines(given: Mapping[str, Any], kinds: Sequence[NodeKind], own_image: str) -> dict[str, Machine]:
    machines = given["machines"]
    names = [kind.name for kind in kinds]
    for name in machines:
        if name not in names:
            raise unknown("kind of node in machines", str(name), names)
    for name in names:
        if name not in machines:
            raise InputError(f"machines says nothing of {name}", f"add {name}: {{flavor: NAME}}")
    return {name: _machine(name, machines[name], given, own_image) for name in names}


def _machine(name: str, machine: Any, given: Mapping[str, Any], own_image: str) -> Machine:
    if not isinstance(machine, Mapping):
        raise InputError(f"machines.{name} is {machine!r}", f"write {name}: {{flavor: NAME}}")
    check_keys(f"machines.{name}", machine, KIND_KEYS, ("flavor",))
    boot = machine.get("boot_gib", given["boot_gib"])
    _size(f"machines.{name}.boot_gib", boot)
    image = str(machine.get("image") or own_image or given["image"])
    zone = str(machine.get("availability_zone", ""))
    return Machine(str(machine["flavor"]), image, boot, str(machine.get("volume_type", "")), zone)


def _size(key: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= 2**20:
        raise InputError(f"{key} is {value!r}", "give a whole number of GiB, 0 for none")


def _network(key: str, value: Any) -> IPv4Network:
    try:
        return IPv4Network(str(value))
    except ValueError as error:
        raise InputError(f"{key} has {value!r}, no IPv4 network", "write one such as 10.20.0.0/24") from error


def _refuse_overlaps(settings: Settings) -> None:
    for one in settings.pod_ranges:
        if IPv4Network(one).overlaps(settings.cidr):
            raise InputError(
                f"cidr {settings.cidr} overlaps {one}, a range of pods",
                "choose another cidr, or another range of pods",
            )
    for dns in settings.dns:
        if not re.fullmatch(r"\d+(\.\d+){3}", dns):
            raise InputError(f"dns has {dns!r}", "give IPv4 addresses of name servers")
