"""DNS records of pods for the node's CoreDNS.

CoreDNS listens on each leg of the node with a server block of its own (plugin `bind`), so that who asks is known by
where the question arrives: there it knows the names of that leg's user, forwards what is outside the cluster's
domain, and denies the rest. In a network that all users share the bridge's address has one block, which
knows the names of that network's pods, whosever they are. Names come from a file in hosts(5) form per user, which
CoreDNS reads again when it changed; blocks change only when a user's first pod comes to the node or the last one goes.
One more block listens on a loopback address for the host's own processes and knows the names of all users: on hosts
they are no secret. Errors are counted, and logged once a minute: a line for each made questions that no upstream
answers cost more in the journal than in the DNS.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from pathlib import Path

from isthmus.model.network import Driver, Job, label
from isthmus.model.networks.ipv6 import PREFIX_MAX, beside, block_beside
from isthmus.model.node_network import Leg
from isthmus.network.bounds import LOGIN_FIRST

# Where a host's own processes may ask; not .53, which is systemd-resolved's.
HOST_ADDRESS = IPv4Address("127.0.0.153")
# Where CoreDNS shows its metrics there; the packet filter lets root alone ask. A port that only programs with the right
# to it can take: CoreDNS does not start without it.
FIGURES_PORT = 153
# Questions of a block that wait for upstreams at a time: where none answers, each waits for seconds and tries them all.
# What is more is refused, and a host's resolver then asks its next server.
FORWARDED_MAX = 256


@dataclass(frozen=True, slots=True)
class DnsSettings:
    """How names are made and asked for.

    Attributes:
        domain: the cluster's, e.g. `isthmus`.
        upstreams: servers for all other names; none: those of the host, which `names` reads.
        search: domains that pods search after the job's and the user's.
        folder: where the files for CoreDNS and for pods lie.
        forwards_hosts: whether the host's own programs may ask for all other names too; with systemd-resolved, which
            would be asked for them in turn, they may not.
        shared: range of each network that all users share.
        ipv6: what the IPv6 addresses of private networks begin with; None where they have none.
    """

    domain: str
    upstreams: tuple[IPv4Address | IPv6Address, ...] = ()
    search: tuple[str, ...] = ()
    folder: Path = Path("/run/isthmus/dns")
    forwards_hosts: bool = True
    shared: Mapping[Driver, IPv4Network] = field(default_factory=dict)
    ipv6: IPv6Network | None = None

    def hosts(self, uid: int) -> Path:
        """Name the file of a user's names."""
        return below(self.folder, f"{uid}.hosts")

    def shared_hosts(self, driver: Driver) -> Path:
        """Name the file of all names of a network that all users share."""
        return self.folder / f"{driver}.hosts"

    @property
    def all_hosts(self) -> Path:
        """Name the file of all users' names."""
        return self.folder / "all.hosts"


# All of a node's files are named at each change of one.
@lru_cache(maxsize=8192)
def below(folder: Path, name: str) -> Path:
    """Return a file of the folder."""
    return folder / name


def hosts(
    user_name: str,
    jobs: Iterable[Job],
    reserved: Mapping[str, IPv4Address],
    addresses: Callable[[Job], Iterable[IPv4Address | None]],
    domain: str,
    ipv6: IPv6Network | None = None,
) -> str:
    """Give the names of a user: lines as in /etc/hosts, one an address, and one more where IPv6 goes with it.

    `pod<n>.<job>` and `pod<n>.<job name>`, for all pods of a job `<job>` and `<job name>` (the newest job of that
    name), and the names of reservations, each below `<user>.<domain>`. A reservation's name wins over a job's.

    Args:
        user_name: the login name.
        jobs: the user's.
        reserved: name -> address kept for it.
        addresses: gives those of a job's pods; None for a pod without one.
        domain: the cluster's.
        ipv6: what the IPv6 addresses of private networks begin with; None where they have none.
    """
    below = f"{label(user_name)}.{domain}"
    ordered = sorted(jobs, key=lambda job: job.id)
    newest = {label(job.name): job.id for job in ordered}
    lines = [
        f"{each} {label(name)}.{below}" for name, address in sorted(reserved.items()) for each in _each(address, ipv6)
    ]
    for job in ordered:
        words = _shared(job, newest, reserved)
        begin = ipv6 if job.driver is Driver.PRIVATE else None
        for index, address in enumerate(addresses(job)):
            if address is not None:
                names = (f"{word}.{below}" for word in (*(f"pod{index}.{word}" for word in words), *words))
                text = " ".join(names)
                lines += [f"{each} {text}" for each in _each(address, begin)]
    return "".join(f"{line}\n" for line in lines)


def corefile(legs: Iterable[Leg], settings: DnsSettings, bridges: Iterable[tuple[Driver, IPv4Address]] = ()) -> str:
    """Return CoreDNS's configuration: a server block for the host itself, one per leg, one per shared bridge."""
    here = _block(HOST_ADDRESS, settings.all_hosts, [settings.domain], settings, settings.forwards_hosts)
    ordered = sorted(legs, key=lambda leg: leg.vni)
    shared = "".join(
        _block(bridge, settings.shared_hosts(driver), _shared_zones(driver, settings), settings)
        for driver, bridge in sorted(set(bridges))
    )
    return (
        here
        + shared
        + "".join(_block(leg.address, settings.hosts(leg.uid), _own_zones(leg, settings), settings) for leg in ordered)
    )


def _own_zones(leg: Leg, settings: DnsSettings) -> list[str]:
    six = reverse_zones6([block_beside(settings.ipv6, block) for block in leg.blocks]) if settings.ipv6 else ()
    return [settings.domain, *reverse_zones(leg.blocks), *six]


def _each(address: IPv4Address, ipv6: IPv6Network | None) -> list[IPv4Address | IPv6Address]:
    """Return an address, and the one that goes with it where there is IPv6."""
    return [address, *([beside(ipv6, address)] if ipv6 else [])]


def _shared_zones(driver: Driver, settings: DnsSettings) -> list[str]:
    network = settings.shared.get(driver)
    return [settings.domain, *reverse_zones([network] if network else [])]


def resolv_conf(job: Job, user_name: str, leg: IPv4Address, settings: DnsSettings) -> str:
    """Return the resolv.conf(5) of a job's pods."""
    below = f"{label(user_name)}.{settings.domain}"
    own = [] if job.id >= LOGIN_FIRST else [f"{job.id}.{below}"]
    search = " ".join([*own, below, *settings.search])
    return f"nameserver {leg}\nsearch {search}\n"


def reverse_zones(blocks: Sequence[IPv4Network]) -> tuple[str, ...]:
    """Return the zones of in-addr.arpa that hold the blocks; one block may need several, as zones end at bytes."""
    zones = [zone for block in blocks for zone in _zones(block)]
    return tuple(dict.fromkeys(zones))


def reverse_zones6(blocks: Sequence[IPv6Network]) -> tuple[str, ...]:
    """Return the zones of ip6.arpa that hold the blocks, as of IPv4; they end at digits of four bits."""
    zones = [zone for block in blocks for zone in _zones6(block)]
    return tuple(dict.fromkeys(zones))


def _zones6(block: IPv6Network) -> list[str]:
    length = min(PREFIX_MAX + 24, -(-block.prefixlen // 4) * 4)
    parts = block.subnets(new_prefix=length) if length > block.prefixlen else [block.supernet(new_prefix=length)]
    digits = (part.network_address.exploded.replace(":", "")[: length // 4] for part in parts)
    return [".".join([*reversed(each), "ip6.arpa"]) for each in digits]


# All of a node's legs are asked for at each change of one.
@lru_cache(maxsize=8192)
def _zones(block: IPv4Network) -> list[str]:
    length = min(24, -(-block.prefixlen // 8) * 8)
    parts = block.subnets(new_prefix=length) if length > block.prefixlen else [block.supernet(new_prefix=length)]
    return [
        ".".join([*reversed(str(part.network_address).split(".")[: length // 8]), "in-addr.arpa"]) for part in parts
    ]


def _block(address: IPv4Address, file: Path, zones: Iterable[str], settings: DnsSettings, forwards: bool = True) -> str:
    upstreams = " ".join(map(str, settings.upstreams))
    # In order: what only the first server knows, the others deny.
    how = f" {{\n        policy sequential\n        max_concurrent {FORWARDED_MAX}\n    }}"
    forward = f"    forward . {upstreams}{how}\n" if forwards and upstreams else ""
    # Refused, and not failed, is what makes a resolver trust its other servers at once.
    asked = "." if forwards else settings.domain
    # In one block alone: in each, every leg that ever was here would leave a hundred series behind. What forwarding and
    # caching count they count for all blocks anyway.
    figures = f"    prometheus {HOST_ADDRESS}:{FIGURES_PORT}\n" if address == HOST_ADDRESS else ""
    return (
        f"{asked}:53 {{\n    bind {address}\n    hosts {file} {' '.join(zones)} {{\n"
        f"        ttl 5\n        reload 500ms\n    }}\n"
        f"{forward}{figures}    cache 30\n    errors {{\n        consolidate 1m .*\n    }}\n}}\n"
    )


def _shared(job: Job, newest: Mapping[str, int], reserved: Mapping[str, IPv4Address]) -> list[str]:
    name = label(job.name)
    # A name of digits alone would be taken for a job's id.
    known = bool(name) and not name.isdecimal() and newest[name] == job.id and name not in map(label, reserved)
    return [str(job.id), *([name] if known else [])]
