"""Checks a plan against the cloud's offer and quotas before anything is created. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from ipaddress import IPv4Network

from isthmus.filters.errors import InputError
from isthmus.filters.provider.openstack import Machine, Settings
from isthmus.filters.suggest import unknown
from isthmus.model.cloud import Flavor, Kind, Offer, Step, Verb

# The API's quota -> the kind of resource that it counts.
_COUNTED = {
    "key_pairs": Kind.KEY_PAIR,
    "server_groups": Kind.SERVER_GROUP,
    "networks": Kind.NETWORK,
    "subnets": Kind.SUBNET,
    "routers": Kind.ROUTER,
    "security_groups": Kind.SECURITY_GROUP,
    "floating_ips": Kind.FLOATING_IP,
    "instances": Kind.SERVER,
}


def refuse(settings: Settings, offer: Offer, steps: Sequence[Step]) -> None:
    """Refuse a plan that the cloud cannot carry out.

    Raises:
        InputError: with all quotas that are too small, or the first thing that the cloud lacks.
    """
    for name, machine in settings.machines.items():
        _refuse_machine(name, machine, offer, uploaded=bool(settings.image_file))
    if settings.external and settings.external not in offer.external:
        raise unknown("network to the outside (external)", settings.external, offer.external)
    for subnet in offer.subnets if settings.external else ():
        if IPv4Network(subnet).overlaps(settings.cidr):
            raise InputError(
                f"cidr {settings.cidr} overlaps {subnet} of network {settings.external}", "choose another cidr"
            )
    if (settings.home_gib or any(machine.boot_gib for machine in settings.machines.values())) and not offer.volumes:
        raise InputError("this cloud has no block storage", "set home_gib and boot_gib to 0")
    short = list(_short(settings, offer, steps))
    if short:
        raise InputError(
            f"quota too small: {'; '.join(short)}",
            "ask the cloud's admin for more, or use fewer nodes",
        )


def _refuse_machine(name: str, machine: Machine, offer: Offer, *, uploaded: bool) -> None:
    if machine.flavor not in offer.flavors:
        raise unknown(f"flavor of machines.{name}", machine.flavor, offer.flavors)
    if machine.image not in offer.images:
        if uploaded and machine.image.startswith("isthmus-node-"):
            return
        raise unknown(f"image of machines.{name}", machine.image, offer.images)
    disk = machine.boot_gib or offer.flavors[machine.flavor].disk_gib
    if disk < offer.images[machine.image]:
        raise InputError(
            f"machines.{name}: image {machine.image} needs {offer.images[machine.image]} GiB, there are {disk}",
            "take a flavor with a larger disk, or set boot_gib",
        )


def needs(settings: Settings, flavors: Mapping[str, Flavor], steps: Sequence[Step]) -> Counter[str]:
    """Return the steps' use of each quota, by the API's names."""
    made = [step for step in steps if step.verb is Verb.CREATE]
    kinds = Counter(step.kind for step in made)
    needed = Counter({quota: kinds[kind] for quota, kind in _COUNTED.items()})
    # A router has a port in the subnet it joins.
    needed["ports"] = kinds[Kind.PORT] + kinds[Kind.ROUTER]
    wanted = [(step.kind, step.wanted.settings) for step in made if step.wanted]
    # The cloud creates each group with two rules.
    needed["security_group_rules"] = sum(len(given["rules"]) for kind, given in wanted if kind is Kind.SECURITY_GROUP)
    for given in (given for kind, given in wanted if kind is Kind.SERVER):
        flavor = flavors[given["flavor"]]
        needed += Counter(cores=flavor.cpus, ram=flavor.memory_mib)
        if given["boot_gib"]:
            needed += Counter(volumes=1, gigabytes=given["boot_gib"])
    for given in (given for kind, given in wanted if kind is Kind.VOLUME):
        needed += Counter(volumes=1, gigabytes=given["gib"])
    return +needed


def _short(settings: Settings, offer: Offer, steps: Sequence[Step]) -> Iterator[str]:
    for name, count in sorted(needs(settings, offer.flavors, steps).items()):
        quota = offer.quotas.get(name)
        if quota and quota.free is not None and count > quota.free:
            yield f"{name}: {count} more are needed, {quota.free} of {quota.limit} are free"
