"""Resources of a cluster in a cloud, shared by plans and the client.

A resource is ours by its mark `isthmus.NAME.ID`, which it is given in the call that makes it: NAME is the cluster's, ID
was drawn by its deployer, so that two deployers with clusters of one name take nothing from each other. Kinds that the
API gives no place for a mark (key pairs, server groups) are ours by the record alone, which names them before they are
made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

UNLIMITED = -1


class Kind(StrEnum):
    """Kinds of resources, in the order in which plans show them."""

    IMAGE = "image"
    KEY_PAIR = "key pair"
    SERVER_GROUP = "server group"
    NETWORK = "network"
    SUBNET = "subnet"
    ROUTER = "router"
    SECURITY_GROUP = "security group"
    PORT = "port"
    VOLUME = "volume"
    SERVER = "server"
    FLOATING_IP = "floating IP"


# Those of a wave need nothing of one another and are made at once; the reverse removes them.
WAVES = (
    (Kind.IMAGE, Kind.KEY_PAIR, Kind.SERVER_GROUP, Kind.NETWORK, Kind.SECURITY_GROUP, Kind.VOLUME),
    (Kind.SUBNET,),
    (Kind.ROUTER, Kind.PORT),
    (Kind.FLOATING_IP, Kind.SERVER),
)
UNMARKED = (Kind.KEY_PAIR, Kind.SERVER_GROUP)
# Names that would be ambiguous where somebody else has one too.
NAMED = (Kind.KEY_PAIR, Kind.SERVER_GROUP, Kind.NETWORK, Kind.ROUTER, Kind.SECURITY_GROUP, Kind.VOLUME, Kind.SERVER)


@dataclass(frozen=True)
class Wanted:
    """A desired resource; its settings refer to others by name, as their ids are not known yet."""

    kind: Kind
    name: str
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Found:
    """A resource that is there, with those of its settings that can be compared.

    Attributes:
        mark: whose it is; "" where nobody marked it.
        status: as the API writes it.
    """

    kind: Kind
    id: str
    name: str
    mark: str = ""
    status: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Flavor:
    """A size of server."""

    cpus: int
    memory_mib: int
    disk_gib: int


@dataclass(frozen=True)
class Quota:
    """Of one thing; the limit may be UNLIMITED."""

    limit: int
    used: int

    @property
    def free(self) -> int | None:
        """How many more there may be; None for any number."""
        return None if self.limit == UNLIMITED else max(0, self.limit - self.used)


@dataclass(frozen=True)
class Offer:
    """What a project finds in its cloud.

    Attributes:
        project: its id.
        region: its name; "" where the cloud has none.
        images: name -> GiB that a disk must have for it.
        flavors: by name.
        external: names of networks to the outside.
        subnets: CIDRs of those networks' subnets, as far as the project may see them.
        quotas: by the API's own names: instances, cores, ram, ports ...
        volumes: whether the cloud has block storage.
        ids: of flavors, images and networks to the outside, by kind and name.
    """

    project: str
    images: Mapping[str, int]
    flavors: Mapping[str, Flavor]
    external: Sequence[str]
    subnets: Sequence[str]
    quotas: Mapping[str, Quota]
    volumes: bool
    region: str = ""
    ids: Mapping[tuple[str, str], str] = field(default_factory=dict)


@dataclass(frozen=True)
class Cloud:
    """One look at a cloud."""

    offer: Offer
    found: Sequence[Found]


class Verb(StrEnum):
    """What a step does."""

    CREATE = "create"
    UPDATE = "update"
    REPLACE = "replace"
    START = "start"
    DELETE = "delete"


@dataclass(frozen=True)
class Step:
    """One change.

    Attributes:
        wanted: the desired resource; None for one to be removed.
        found: what is there; None for what is not.
        why: for people.
    """

    verb: Verb
    wanted: Wanted | None
    found: Found | None
    why: str = ""

    @property
    def kind(self) -> Kind:
        """Of what it is about."""
        return (self.wanted or self._found).kind

    @property
    def name(self) -> str:
        """Of what it is about."""
        return (self.wanted or self._found).name

    @property
    def _found(self) -> Found:
        assert self.found is not None  # noqa: S101 (a step is about something)
        return self.found

    def __str__(self) -> str:
        """Write it as a line of a plan."""
        return f"{self.verb} {self.kind} {self.name}{f': {self.why}' if self.why else ''}"


@dataclass(frozen=True)
class Made:
    """What a step left: its id, and what others may ask of it (an address)."""

    kind: Kind
    name: str
    id: str
    address: str = ""
