"""Reads a project's resources and quotas, in about fifteen concurrent calls."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from openstack.connection import Connection

from isthmus.clients.openstack.connection import calls, region_of
from isthmus.model.cloud import Cloud, Flavor, Found, Kind, Offer, Quota

MARK = "isthmus"
INTERFACE = "network:router_interface"
_AT_ONCE = 8
_MIB = 1024
_NETWORK_QUOTAS = (
    "networks",
    "subnets",
    "ports",
    "routers",
    "security_groups",
    "security_group_rules",
    "floating_ips",
)


def look(connection: Connection, *, offers: bool = True) -> Cloud:
    """Ask for all.

    Args:
        connection: to the cloud.
        offers: False: without flavors and quotas, which a removal has no use for.

    Raises:
        CloudError: a service cannot be asked.
    """
    project = str(connection.current_project_id)
    answers = _answers(connection, project, offers)
    names = {one.id: one.name for key in ("networks", "subnets", "groups", "ports", "images") for one in answers[key]}
    images = {one.name: _image_gib(one) for one in answers["images"]}
    external = [one for one in answers["networks"] if one.is_router_external]
    ids = {one.id for one in external}
    offer = Offer(
        project=project,
        images=images,
        flavors={one.name: Flavor(one.vcpus, one.ram, one.disk) for one in answers.get("flavors", ())},
        external=[one.name for one in external],
        subnets=[one.cidr for one in answers["subnets"] if one.network_id in ids and one.ip_version == 4],
        quotas=_quotas(answers) if offers else {},
        volumes=has_volumes(connection),
        region=region_of(connection),
        ids=_ids("flavor", answers.get("flavors", ())) | _ids("image", answers["images"]) | _ids("network", external),
    )
    return Cloud(offer, list(_found(answers, names, project)))


def _ids(kind: str, found: Sequence[Any]) -> dict[tuple[str, str], str]:
    """Return the ids of what has a name of its own; a name that several have is left to the call that refuses it."""
    counts = Counter(one.name for one in found)
    return {(kind, one.name): str(one.id) for one in found if counts[one.name] == 1}


def look_at_servers(connection: Connection) -> list[Found]:
    """Ask for servers and ports alone: two calls, of which each start of nodes by Slurm needs one.

    Raises:
        CloudError: a service cannot be asked.
    """
    with calls("asking the cloud for its servers"):
        servers = [read_server(one, {}) for one in connection.compute.servers(details=True)]
    with calls("asking the cloud for its ports"):
        project = str(connection.current_project_id)
        return servers + [_port(one, {}) for one in connection.network.ports(project_id=project)]


def _answers(connection: Connection, project: str, offers: bool) -> dict[str, Any]:
    network, compute, image = connection.network, connection.compute, connection.image
    questions: dict[str, Callable[[], Any]] = {
        "servers": lambda: list(compute.servers(details=True)),
        "key_pairs": lambda: list(compute.keypairs()),
        "server_groups": lambda: list(compute.server_groups()),
        "images": lambda: list(image.images(limit=500)),
        "networks": lambda: list(network.networks()),
        "subnets": lambda: list(network.subnets()),
        "routers": lambda: list(network.routers(project_id=project)),
        "groups": lambda: list(network.security_groups(project_id=project)),
        "ports": lambda: list(network.ports(project_id=project)),
        "floating_ips": lambda: list(network.ips(project_id=project)),
        "volumes": lambda: list(connection.block_storage.volumes()) if has_volumes(connection) else [],
    }
    if offers:
        questions |= {
            "flavors": lambda: list(compute.flavors()),
            "limits": lambda: compute.get_limits().absolute,
            "network_quotas": lambda: network.get_quota(project, details=True),
            "volume_limits": lambda: (
                connection.block_storage.get_limits().absolute if has_volumes(connection) else None
            ),
        }

    def ask(name: str) -> Any:
        with calls(f"asking the cloud for its {name.replace('_', ' ')}"):
            return questions[name]()

    # Each service is found by the catalog, once.
    for service in (network, compute, image):
        with calls("finding the cloud's services"):
            service.get_endpoint_data()
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return dict(zip(questions, pool.map(ask, questions), strict=True))


def has_volumes(connection: Connection) -> bool:
    """Return whether the cloud has block storage."""
    return bool(connection.config.get_session_endpoint("block-storage"))


def _image_gib(image: Any) -> int:
    size = int(image.virtual_size or image.size or 0)
    return max(int(image.min_disk or 0), -(-size // 2**30))


def _quotas(answers: Mapping[str, Any]) -> dict[str, Quota]:
    limits, network, volumes = answers["limits"], answers["network_quotas"], answers["volume_limits"]
    found = {
        "instances": Quota(limits.instances, limits.instances_used),
        "cores": Quota(limits.total_cores, limits.total_cores_used),
        "ram": Quota(limits.total_ram, limits.total_ram_used),
        "key_pairs": Quota(limits.keypairs, len(answers["key_pairs"])),
        "server_groups": Quota(limits.server_groups, limits.server_groups_used),
    }
    for name in _NETWORK_QUOTAS:
        row = getattr(network, name)
        found[name] = Quota(int(row["limit"]), int(row["used"]))
    if volumes is not None:
        found["volumes"] = Quota(volumes.max_total_volumes, volumes.total_volumes_used)
        found["gigabytes"] = Quota(volumes.max_total_volume_gigabytes, volumes.total_gigabytes_used)
    return found


def _found(answers: Mapping[str, Any], names: Mapping[str, str], project: str) -> Iterator[Found]:
    yield from (
        Found(Kind.IMAGE, one.id, one.name, _property(one), str(one.status))
        for one in answers["images"]
        if one.owner_id == project
    )
    for pair in answers["key_pairs"]:
        yield Found(Kind.KEY_PAIR, pair.fingerprint, pair.name, settings={"public_key": str(pair.public_key).strip()})
    for one in answers["server_groups"]:
        yield Found(Kind.SERVER_GROUP, one.id, one.name, settings={"policy": one.policy or (one.policies or [""])[0]})
    yield from _networks(answers, names, project)
    for one in answers["groups"]:
        rules = sorted(_rule(rule, names) for rule in one.security_group_rules)
        yield Found(Kind.SECURITY_GROUP, one.id, one.name, str(one.description or ""), settings={"rules": rules})
    yield from (_port(one, names) for one in answers["ports"] if one.device_owner != INTERFACE)
    for one in answers["volumes"]:
        yield Found(
            Kind.VOLUME, one.id, str(one.name or ""), (one.metadata or {}).get(MARK, ""), one.status, {"gib": one.size}
        )
    yield from (read_server(one, names) for one in answers["servers"])
    port_names = {one.id: one.name for one in answers["ports"]}
    for one in answers["floating_ips"]:
        settings = {"external": names.get(one.floating_network_id, ""), "port": port_names.get(one.port_id, "")}
        text, _, name = str(one.description or "").partition(" ")
        address = {"address": one.floating_ip_address}
        yield Found(Kind.FLOATING_IP, one.id, name, text, str(one.status), {**settings, **address})


def _networks(answers: Mapping[str, Any], names: Mapping[str, str], project: str) -> Iterator[Found]:
    for one in answers["networks"]:
        if one.project_id == project:
            yield Found(Kind.NETWORK, one.id, one.name, str(one.description or ""), one.status)
    for one in answers["subnets"]:
        if one.project_id == project:
            settings = {"network": names.get(one.network_id, ""), "cidr": one.cidr, "dns": list(one.dns_nameservers)}
            settings["dhcp"] = one.is_dhcp_enabled
            yield Found(Kind.SUBNET, one.id, one.name, str(one.description or ""), settings=settings)
    for one in answers["routers"]:
        joined = [port for port in answers["ports"] if port.device_id == one.id and port.device_owner == INTERFACE]
        subnets = [names.get(fixed["subnet_id"], "") for port in joined for fixed in port.fixed_ips]
        gateway = (one.external_gateway_info or {}).get("network_id", "")
        settings = {"external": names.get(gateway, ""), "subnet": subnets[0] if subnets else ""}
        yield Found(Kind.ROUTER, one.id, one.name, str(one.description or ""), one.status, settings)


def _property(image: Any) -> str:
    return str((image.properties or {}).get(MARK, "") or getattr(image, MARK, "") or "")


def _port(port: Any, names: Mapping[str, str]) -> Found:
    settings = {
        "network": names.get(port.network_id, ""),
        "address": next((fixed["ip_address"] for fixed in port.fixed_ips), ""),
        "groups": sorted(names.get(group, group) for group in port.security_group_ids),
        "pairs": sorted(pair["ip_address"] for pair in port.allowed_address_pairs or ()),
    }
    return Found(Kind.PORT, port.id, port.name, str(port.description or ""), port.status, settings)


def read_server(server: Any, names: Mapping[str, str]) -> Found:
    """Read a server; `names` are those of images by their ids."""
    image = names.get(server.image.id, "") if server.image else ""
    settings = {"flavor": server.flavor.original_name or server.flavor.name, "image": image}
    addresses = [one["addr"] for found in (server.addresses or {}).values() for one in found]
    shown = {"addresses": addresses, "fault": (server.fault or {}).get("message", "")}
    mark = (server.metadata or {}).get(MARK, "")
    return Found(Kind.SERVER, server.id, server.name, mark, server.status, {**settings, **shown})


def _rule(rule: Mapping[str, Any], names: Mapping[str, str]) -> tuple[str, str, str, str, str]:
    group, source = rule.get("remote_group_id"), rule.get("remote_ip_prefix")
    remote = f"group {names.get(group, group)}" if group else source or "-"
    low, high = rule.get("port_range_min"), rule.get("port_range_max")
    port = "-" if low is None else str(low) if low == high else f"{low}-{high}"
    return (rule["direction"], rule["ethertype"], rule["protocol"] or "-", port, remote)
