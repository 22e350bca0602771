"""Calls that change a project: one method for each kind of resource and verb; deleting is idempotent."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from threading import Lock
from typing import Any

from openstack.connection import Connection

from isthmus.clients.openstack.connection import CloudError, calls
from isthmus.clients.openstack.look import INTERFACE, MARK, read_server
from isthmus.model.cloud import Found, Kind, Made, Step, Verb, Wanted

Names = Mapping[tuple[Kind, str], str]
_BOOT = {"source_type": "image", "destination_type": "volume", "boot_index": 0, "delete_on_termination": True}
_HOME = {"source_type": "volume", "destination_type": "volume", "boot_index": -1, "delete_on_termination": False}
# nova's status -> the call that ends it.
_WAKE = {
    "SHUTOFF": "start_server",
    "PAUSED": "unpause_server",
    "SUSPENDED": "resume_server",
    "SHELVED": "unshelve_server",
    "SHELVED_OFFLOADED": "unshelve_server",
}


class Changes:
    """Changes one project.

    Args:
        connection: to it.
        mark: written into what is made.
        ids: of flavors, images and networks of the cloud, by kind and name; others are asked for.
    """

    def __init__(self, connection: Connection, mark: str, ids: Mapping[tuple[str, str], str] | None = None) -> None:
        self._cloud, self._mark = connection, mark
        self._ids = dict(ids or {})
        self._asking: dict[tuple[str, str], Lock] = {}

    def apply(self, step: Step, ids: Names) -> Made:
        """Take a step that makes, changes or wakes something; a server is then on its way.

        Args:
            step: what to do.
            ids: of what is there, by kind and name.

        Raises:
            CloudError: the cloud refused.
        """
        assert step.wanted is not None  # noqa: S101 (removals go another way)
        with calls(str(step)):
            if step.verb is Verb.START and step.found:
                getattr(self._cloud.compute, _WAKE[step.found.status.upper()])(step.found.id)
                return Made(step.kind, step.name, step.found.id)
            if step.verb is Verb.UPDATE and step.found:
                return self._update(step.wanted, step.found, ids)
            return self._create(step.wanted, ids)

    def servers(self, names: Iterable[str]) -> dict[str, Found]:
        """Ask for servers by name, in one call; those that are gone are left out."""
        wanted = set(names)
        with calls("asking for servers"):
            found = self._cloud.compute.servers(details=True)
            return {one.name: read_server(one, {}) for one in found if one.name in wanted}

    def listed(self, names: Iterable[str], status: str = "") -> set[str]:
        """Return which of these servers there are, or are in this state: the cheapest question there is."""
        given: dict[str, Any] = {"status": status} if status else {}
        with calls("asking for servers"):
            found = self._cloud.compute.servers(details=False, **given)
            return {str(one.name) for one in found}.intersection(names)

    def fault(self, server: Found) -> str:
        """Return why a server failed, or "".

        nova keeps those that no hypervisor took in a cell of their own, and lists them without their fault: such a
        server is asked for alone.
        """
        if not server.settings.get("fault"):
            with calls(f"asking for server {server.name}"):
                server = read_server(self._cloud.compute.get_server(server.id), {})
        return str(server.settings["fault"]).strip(" .")

    def ports(self, wanted: Sequence[Wanted], ids: Names) -> list[Made]:
        """Make ports in one call."""
        with calls(f"making {len(wanted)} ports"):
            made = self._cloud.network.create_ports([self._port(one, ids) for one in wanted])
            return [Made(Kind.PORT, str(one.name), str(one.id)) for one in made]

    def _create(self, wanted: Wanted, ids: Names) -> Made:
        makers: dict[Kind, Callable[[Wanted, Names], Any]] = {
            Kind.IMAGE: self._image,
            Kind.KEY_PAIR: self._key_pair,
            Kind.SERVER_GROUP: self._server_group,
            Kind.NETWORK: self._network,
            Kind.SUBNET: self._subnet,
            Kind.ROUTER: self._router,
            Kind.SECURITY_GROUP: self._group,
            Kind.VOLUME: self._volume,
            Kind.SERVER: self._server,
            Kind.FLOATING_IP: self._floating_ip,
        }
        made = makers[wanted.kind](wanted, ids)
        address = str(made.floating_ip_address) if wanted.kind is Kind.FLOATING_IP else ""
        identity = made.fingerprint if wanted.kind is Kind.KEY_PAIR else made.id
        return Made(wanted.kind, wanted.name, str(identity), address)

    def _image(self, wanted: Wanted, ids: Names) -> Any:
        shape: dict[str, Any] = {"disk_format": "qcow2", "container_format": "bare", "visibility": "private"}
        meta = {MARK: self._mark, "hw_rng_model": "virtio"}
        file, digest = wanted.settings["file"], wanted.settings["digest"]
        return self._cloud.image.create_image(
            wanted.name, filename=file, sha256=digest, allow_duplicates=True, wait=True, meta=meta, **shape
        )

    def _key_pair(self, wanted: Wanted, ids: Names) -> Any:
        return self._cloud.compute.create_keypair(name=wanted.name, public_key=wanted.settings["public_key"])

    def _server_group(self, wanted: Wanted, ids: Names) -> Any:
        return self._cloud.compute.create_server_group(name=wanted.name, policy=wanted.settings["policy"])

    def _network(self, wanted: Wanted, ids: Names) -> Any:
        return self._cloud.network.create_network(name=wanted.name, description=self._mark)

    def _subnet(self, wanted: Wanted, ids: Names) -> Any:
        given = wanted.settings
        return self._cloud.network.create_subnet(
            name=wanted.name,
            description=self._mark,
            network_id=ids[Kind.NETWORK, given["network"]],
            ip_version=4,
            cidr=given["cidr"],
            dns_nameservers=given["dns"],
            enable_dhcp=given["dhcp"],
        )

    def _router(self, wanted: Wanted, ids: Names) -> Any:
        gateway = {"network_id": self._external(wanted.settings["external"])}
        made = self._cloud.network.create_router(
            name=wanted.name, description=self._mark, external_gateway_info=gateway
        )
        self._cloud.network.add_interface_to_router(made, subnet=ids[Kind.SUBNET, wanted.settings["subnet"]])
        return made

    def _group(self, wanted: Wanted, ids: Names) -> Any:
        made = self._cloud.network.create_security_group(name=wanted.name, description=self._mark)
        self._rules(wanted, made.id, made.security_group_rules, ids)
        return made

    def _rules(self, wanted: Wanted, group: str, there: Iterable[Mapping[str, Any]], ids: Names) -> None:
        """Bring rules to what is wanted; the cloud has given a new group two of its own."""
        own = {**ids, (Kind.SECURITY_GROUP, wanted.name): group}
        shall = [_rule(rule, own) for rule in wanted.settings["rules"]]
        have = {rule["id"]: {key: rule.get(key) for key in shall[0]} for rule in there}
        for rule_id, rule in have.items():
            if rule not in shall:
                self._cloud.network.delete_security_group_rule(rule_id)
        for rule in shall:
            if rule not in have.values():
                given = {key: value for key, value in rule.items() if value is not None}
                self._cloud.network.create_security_group_rule(security_group_id=group, **given)

    def _port(self, wanted: Wanted, ids: Names) -> dict[str, Any]:
        given = wanted.settings
        network = given["network"]
        fixed = {"subnet_id": ids[Kind.SUBNET, network], "ip_address": given["address"]}
        return {
            "name": wanted.name,
            "description": self._mark,
            "network_id": ids[Kind.NETWORK, network],
            "fixed_ips": [fixed],
            "security_groups": [ids[Kind.SECURITY_GROUP, name] for name in given["groups"]],
            "allowed_address_pairs": [{"ip_address": one} for one in given["pairs"]],
        }

    def _volume(self, wanted: Wanted, ids: Names) -> Any:
        made = self._cloud.block_storage.create_volume(
            name=wanted.name, size=wanted.settings["gib"], metadata={MARK: self._mark}
        )
        return self._cloud.block_storage.wait_for_status(made, "available", failures=["error"], interval=1, wait=300)

    def _server(self, wanted: Wanted, ids: Names) -> Any:
        given = wanted.settings
        more: dict[str, Any] = {}
        disks = []
        if given["boot_gib"]:
            boot = {**_BOOT, "uuid": self._image_id(given["image"], ids), "volume_size": given["boot_gib"]}
            disks.append(boot | ({"volume_type": given["volume_type"]} if given["volume_type"] else {}))
        else:
            more["image_id"] = self._image_id(given["image"], ids)
        if given["volume"]:
            disks += [] if given["boot_gib"] else [_local_boot(more["image_id"])]
            disks.append({**_HOME, "uuid": ids[Kind.VOLUME, given["volume"]]})
        if disks:
            more["block_device_mapping"] = disks
        if given["group"]:
            more["scheduler_hints"] = {"group": ids[Kind.SERVER_GROUP, given["group"]]}
        if given["key"]:
            more["key_name"] = given["key"]
        if given["availability_zone"]:
            more["availability_zone"] = given["availability_zone"]
        return self._cloud.compute.create_server(
            name=wanted.name,
            flavor_id=self._id("flavor", given["flavor"]),
            networks=[{"port": ids[Kind.PORT, given["port"]]}],
            config_drive=True,
            metadata={MARK: self._mark},
            user_data=_base64(given["user_data"]),
            **more,
        )

    def _floating_ip(self, wanted: Wanted, ids: Names) -> Any:
        return self._cloud.network.create_ip(
            floating_network_id=self._external(wanted.settings["external"]),
            port_id=ids[Kind.PORT, wanted.settings["port"]],
            description=f"{self._mark} {wanted.name}",
        )

    def _update(self, wanted: Wanted, found: Found, ids: Names) -> Made:
        network, given = self._cloud.network, wanted.settings
        if wanted.kind is Kind.KEY_PAIR:
            self._cloud.compute.delete_keypair(wanted.name)
            return self._create(wanted, ids)
        if wanted.kind is Kind.SUBNET:
            network.update_subnet(found.id, dns_nameservers=given["dns"], enable_dhcp=given["dhcp"])
        elif wanted.kind is Kind.ROUTER:
            network.update_router(found.id, external_gateway_info={"network_id": self._external(given["external"])})
            if found.settings["subnet"] != given["subnet"]:
                network.add_interface_to_router(found.id, subnet=ids[Kind.SUBNET, given["subnet"]])
        elif wanted.kind is Kind.SECURITY_GROUP:
            self._rules(wanted, found.id, network.get_security_group(found.id).security_group_rules, ids)
        elif wanted.kind is Kind.PORT:
            port = self._port(wanted, ids)
            pairs = port["allowed_address_pairs"]
            network.update_port(found.id, security_groups=port["security_groups"], allowed_address_pairs=pairs)
        elif wanted.kind is Kind.VOLUME:
            volumes: Any = self._cloud.block_storage
            volumes.extend_volume(found.id, given["gib"])
        elif wanted.kind is Kind.FLOATING_IP:
            network.update_ip(found.id, port_id=ids[Kind.PORT, given["port"]])
        else:
            raise CloudError(f"{wanted.kind} {wanted.name} cannot be changed", "tear the cluster down first")
        return Made(wanted.kind, wanted.name, found.id)

    def delete(self, found: Found) -> None:
        """Remove something; a server is then on its way out."""
        network, compute = self._cloud.network, self._cloud.compute
        with calls(f"removing {found.kind} {found.name}"):
            if found.kind is Kind.ROUTER:
                for port in network.ports(device_id=found.id, device_owner=INTERFACE):
                    network.remove_interface_from_router(found.id, port=port.id)
            removers: dict[Kind, Callable[[str], Any]] = {
                Kind.IMAGE: self._cloud.image.delete_image,
                Kind.KEY_PAIR: lambda _: compute.delete_keypair(found.name),
                Kind.SERVER_GROUP: compute.delete_server_group,
                Kind.NETWORK: network.delete_network,
                Kind.SUBNET: network.delete_subnet,
                Kind.ROUTER: network.delete_router,
                Kind.SECURITY_GROUP: network.delete_security_group,
                Kind.PORT: network.delete_port,
                Kind.VOLUME: lambda one: self._cloud.block_storage.delete_volume(one),
                Kind.SERVER: compute.delete_server,
                Kind.FLOATING_IP: network.delete_ip,
            }
            removers[found.kind](found.id)

    def _external(self, name: str) -> str:
        return self._id("network", name)

    def _image_id(self, name: str, ids: Names) -> str:
        return ids.get((Kind.IMAGE, name)) or self._id("image", name)

    def _id(self, kind: str, name: str) -> str:
        """Return the id of something of the cloud's own, of which each is asked for once by all threads.

        Each has a lock of its own: a cloud that makes servers may take ten seconds to answer.
        """
        with self._asking.setdefault((kind, name), Lock()):
            if (kind, name) not in self._ids:
                cloud = self._cloud
                find: dict[str, Callable[..., Any]] = {
                    "flavor": cloud.compute.find_flavor,
                    "image": cloud.image.find_image,
                    "network": cloud.network.find_network,
                }
                self._ids[kind, name] = str(find[kind](name, ignore_missing=False).id)
            return self._ids[kind, name]


def _local_boot(image: str) -> dict[str, Any]:
    """The flavor's own disk, which a mapping of further disks must name too."""
    return {
        "uuid": image,
        "source_type": "image",
        "destination_type": "local",
        "boot_index": 0,
        "delete_on_termination": True,
    }


def _rule(rule: Sequence[str], ids: Names) -> dict[str, Any]:
    direction, ether, protocol, port, remote = rule
    group = remote.removeprefix("group ") if remote.startswith("group ") else ""
    low, _, high = ("", "", "") if port == "-" else port.partition("-")
    return {
        "direction": direction,
        "ethertype": ether,
        "protocol": None if protocol == "-" else protocol,
        "port_range_min": int(low) if low else None,
        "port_range_max": int(high or low) if low else None,
        "remote_ip_prefix": None if group or remote == "-" else remote,
        "remote_group_id": ids[Kind.SECURITY_GROUP, group] if group else None,
    }


def _base64(text: str) -> str:
    return b64encode(text.encode()).decode()
