"""Variables of a cloud's cluster, and a cloud, for the tests of this folder."""

from typing import Any

from isthmus.filters.provider.openstack import Settings, read
from isthmus.model.cloud import Cloud, Flavor, Found, Kind, Offer, Quota, Wanted

NODES = {
    "ctl": {"group": "controller", "at": 10},
    "login": {"group": "login", "at": 11},
    "c": {"group": "compute", "count": 2, "at": 21},
}
VARIABLES: dict[str, Any] = {
    "cluster": "hpc",
    "nodes": NODES,
    "machines": {"ctl": {"flavor": "big"}, "login": {"flavor": "small"}, "c": {"flavor": "small"}},
    "image": "debian-13",
    "image_file": "",
    "image_digest": "",
    "boot_gib": 0,
    "home_gib": 0,
    "spread": ["ctl"],
    "spread_policy": "anti-affinity",
    "cidr": "10.20.0.0/24",
    "dns": ["192.0.2.53"],
    "dhcp": True,
    "external": "public",
    "login_sources": ["0.0.0.0/0"],
    "pod_ranges": ["10.64.0.0/11"],
    "public_key": "ssh-ed25519 AAAA hpc\n",
    "timeout_s": 60,
}
MARK = "isthmus.hpc.0a0b0c0d"
OFFER = Offer(
    project="p1",
    images={"debian-13": 2},
    flavors={"small": Flavor(2, 4096, 20), "big": Flavor(4, 8192, 40)},
    external=["public"],
    subnets=["203.0.113.0/24"],
    quotas={"instances": Quota(-1, 0)},
    volumes=True,
)


def settings(**changed: Any) -> Settings:
    """Return settings with some variables changed."""
    return read({**VARIABLES, **changed})


def found(wanted: Wanted, **changed: Any) -> Found:
    """Return what a cloud has after `wanted` was made."""
    marked = wanted.kind not in (Kind.KEY_PAIR, Kind.SERVER_GROUP)
    status = "ACTIVE" if wanted.kind in (Kind.SERVER, Kind.IMAGE) else "available"
    shape = {"mark": MARK if marked else "", "status": status, "settings": wanted.settings, **changed}
    return Found(wanted.kind, f"id-{wanted.kind}-{wanted.name}", wanted.name, **shape)


def cloud(*there: Found, offer: Offer = OFFER) -> Cloud:
    """Return a cloud that has these."""
    return Cloud(offer, there)
