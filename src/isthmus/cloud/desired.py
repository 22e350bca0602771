"""The desired resources of a cluster, in the order in which they can be created. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from isthmus.cloud.userdata import Join, user_data
from isthmus.filters.provider.openstack import Machine, Settings
from isthmus.model.cloud import Kind, Wanted

# Security group rules; `-` is any.
Rule = tuple[str, str, str, str, str]
_OUT: list[Rule] = [("egress", "IPv4", "-", "-", "-"), ("egress", "IPv6", "-", "-", "-")]
NETWORK, ROUTER, KEY, HOME = "net", "router", "key", "home"
NODES, LOGIN, SPREAD = "nodes", "login", "spread"
UNMARKED_NAMES = {Kind.KEY_PAIR: KEY, Kind.SERVER_GROUP: SPREAD}


def desired(settings: Settings) -> list[Wanted]:
    """Return all resources; for nodes that Slurm starts only the ports, which keep their addresses."""
    return [*_shared(settings), *_ports(settings), *_home(settings), *_servers(settings), *_entry(settings)]


def _shared(settings: Settings) -> Iterator[Wanted]:
    name = settings.name
    if settings.image_file:
        own = f"isthmus-node-{settings.image_digest[:16]}"
        yield Wanted(Kind.IMAGE, own, {"file": settings.image_file, "digest": settings.image_digest})
    yield Wanted(Kind.KEY_PAIR, name(KEY), {"public_key": settings.public_key})
    if len(settings.spread) > 1:
        yield Wanted(Kind.SERVER_GROUP, name(SPREAD), {"policy": settings.spread_policy})
    yield Wanted(Kind.NETWORK, name(NETWORK))
    subnet = {"network": name(NETWORK), "cidr": str(settings.cidr), "dns": [*settings.dns], "dhcp": settings.dhcp}
    yield Wanted(Kind.SUBNET, name(NETWORK), subnet)
    if settings.external:
        yield Wanted(Kind.ROUTER, name(ROUTER), {"external": settings.external, "subnet": name(NETWORK)})
    within: Rule = ("ingress", "IPv4", "-", "-", f"group {name(NODES)}")
    ssh: list[Rule] = [("ingress", "IPv4", "tcp", "22", source) for source in settings.login_sources]
    yield Wanted(Kind.SECURITY_GROUP, name(NODES), {"rules": sorted([*_OUT, within])})
    yield Wanted(Kind.SECURITY_GROUP, name(LOGIN), {"rules": sorted([*_OUT, *ssh])})


def _ports(settings: Settings) -> Iterator[Wanted]:
    for kind in settings.kinds:
        # SSH from outside is for login nodes, or the node with the floating IP.
        for node, address in kind.addresses(settings.cidr).items():
            entry = kind.part == "login" or node == settings.entry
            groups = [settings.name(NODES)] + ([settings.name(LOGIN)] if entry else [])
            shape = {"network": settings.name(NETWORK), "address": address, "groups": sorted(groups)}
            yield Wanted(Kind.PORT, settings.name(node), {**shape, "pairs": sorted(settings.pod_ranges)})


def _home(settings: Settings) -> Iterator[Wanted]:
    if settings.home_gib:
        yield Wanted(Kind.VOLUME, settings.name(HOME), {"gib": settings.home_gib})


def _servers(settings: Settings) -> list[Wanted]:
    """Return the servers, those with volumes first: they take longest."""
    nodes = [(node, settings.machines[kind.name]) for kind in settings.kinds if not kind.cloud for node in kind.nodes]
    servers = [Wanted(Kind.SERVER, settings.name(node), _server(settings, node, machine)) for node, machine in nodes]
    return sorted(servers, key=lambda one: not (one.settings["volume"] or one.settings["boot_gib"]))


def cloud_server(settings: Settings, node: str, join: Join) -> Wanted:
    """Return the server of a node that Slurm starts.

    Its port exists already. A key pair belongs to one user of the cloud and the controller may be another: so the
    public key is in the user data.
    """
    kind = next(kind for kind in settings.kinds if node in kind.nodes)
    server = _server(settings, node, settings.machines[kind.name])
    return Wanted(Kind.SERVER, settings.name(node), {**server, "key": "", "user_data": user_data(node, join=join)})


def _server(settings: Settings, node: str, machine: Machine) -> dict[str, object]:
    home = settings.name(HOME) if settings.home_gib and node == settings.controller else ""
    spread = settings.name(SPREAD) if len(settings.spread) > 1 and node in settings.spread else ""
    return {
        "flavor": machine.flavor,
        "image": machine.image,
        "boot_gib": machine.boot_gib,
        "volume_type": machine.volume_type,
        "availability_zone": machine.availability_zone,
        "key": settings.name(KEY),
        "port": settings.name(node),
        "group": spread,
        "volume": home,
        "user_data": user_data(node, home=bool(home)),
    }


def _entry(settings: Settings) -> Iterator[Wanted]:
    if settings.external:
        shape = {"external": settings.external, "port": settings.name(settings.entry)}
        yield Wanted(Kind.FLOATING_IP, settings.name(settings.entry), shape)
