"""Values of etcd: JSON objects with `"schema": 1`, one way to write each thing, and nothing else is read.

A job on 4,000 nodes is read by 4,000 daemons whenever it or its user's network changes, so what counts up is folded:
`"nodes": "c[1-4000]", "addresses": ["10.64.0.1-10.64.15.160"]`, and a user's legs `{"c[1-2]": "10.64.0.3-10.64.0.4"}`.
Addresses are given in a row, so this is the usual case; what does not count up is written one by one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network
from itertools import pairwise
from typing import Any

from isthmus.model.network import (
    Active,
    Attachment,
    Driver,
    Exposure,
    Heard,
    Job,
    Lease,
    Node,
    Ranges,
    User,
    is_reservation,
)
from isthmus.network import bounds
from isthmus.network.api.fields import FieldError, Fields, address, network, parse, shown
from isthmus.network.drivers.registry import definition
from isthmus.network.node.nodelist import NODES_MAX, NodeListError, fold, unfold
from isthmus.network.state.keys import (
    AttachmentKey,
    ExposedKey,
    GatewayKey,
    HeardKey,
    JobKey,
    Key,
    Keys,
    LeaseKey,
    NodeKey,
    RangesKey,
    StoredError,
    UserKey,
)

SCHEMA = 1
# A block's first and last address belong to nobody, so a smaller one holds none.
BLOCK_PREFIX_MAX = 30
_LIST_MAX = 2**20


@dataclass(frozen=True, slots=True)
class Guard:
    """What all daemons agree on; compared and rewritten by every transaction that takes a VNI or a block.

    Attributes:
        ranges: a daemon with other ranges in its settings must not take anything.
        serial: grows by one with each rewriting.
    """

    ranges: Ranges
    serial: int = 0


Value = Node | User | Job | Lease | Attachment | Active | Heard | Exposure | Guard


def key_of(value: Value) -> Key:
    """Return the key a value is kept under."""
    match value:
        case Node():
            return NodeKey(value.name)
        case User():
            return UserKey(value.uid)
        case Job():
            return JobKey(value.id)
        case Lease():
            return LeaseKey(value.uid, value.node)
        case Attachment():
            return AttachmentKey(value.job, value.node)
        case Active():
            return GatewayKey()
        case Heard():
            return HeardKey(value.node)
        case Exposure():
            return ExposedKey(*value.door)
        case Guard():
            return RangesKey()


def encode(value: Value) -> str:
    """Write a value; equal values give equal texts."""
    return json.dumps({"schema": SCHEMA, **_written(value)}, sort_keys=True, separators=(",", ":"))


def decode(keys: Keys, path: str, text: str) -> Value:
    """Read the value of a key.

    Raises:
        StoredError: no key of this version, or a value that `encode` would not write.
    """
    key = keys.parse(path)
    try:
        fields = Fields(parse(text))
        schema = fields.integer("schema", 1, 2**31)
        if schema != SCHEMA:
            raise FieldError(f"schema {schema} is of a newer version")
        value = _read(key, fields)
        fields.end()
    except (FieldError, NodeListError) as error:
        raise StoredError(path, str(error)) from error
    return value


def _written(value: Value) -> dict[str, Any]:
    match value:
        case Node():
            # Others than gateways are written as by versions that know of none.
            return {"address": str(value.address), "mtu": value.mtu, **({"gateway": True} if value.gateway else {})}
        case User():
            return _user_written(value)
        case Job():
            return {
                "uid": value.uid,
                "name": value.name,
                "driver": value.driver,
                "nodes": fold(value.nodes),
                "addresses": [_run(run) for run in _runs(value.addresses)],
                "reservation": value.reservation,
            }
        case Lease():
            return {"since_s": value.since_s}
        case Attachment():
            return {"address": str(value.address)}
        case Active():
            return {"node": value.node}
        case Heard():
            return {}
        case Exposure():
            return {"uid": value.uid, "reservation": value.reservation}
        case Guard(ranges=ranges):
            return {
                "serial": value.serial,
                "pods": str(ranges.pods),
                "block_prefix": ranges.block_prefix,
                "vni_first": ranges.vni_first,
                "vni_last": ranges.vni_last,
            }


def _user_written(user: User) -> dict[str, Any]:
    legs = {address: node for node, address in user.legs.items()}
    return {
        "name": user.name,
        "vni": user.vni,
        "blocks": [str(block) for block in user.blocks],
        "legs": {fold(legs[each] for each in run): _run(run) for run in _runs(sorted(legs))},
        "reserved": {name: str(address) for name, address in user.reserved.items()},
        "cursor": None if user.cursor is None else str(user.cursor),
    }


def _read(key: Key, fields: Fields) -> Value:
    match key:
        case NodeKey():
            return _node(key.name, fields)
        case UserKey():
            return _user(key.uid, fields)
        case JobKey():
            return _job(key.id, fields)
        case LeaseKey():
            return Lease(key.uid, key.node, fields.integer("since_s", 0, 2**63))
        case AttachmentKey():
            return Attachment(key.job, key.node, fields.address("address"))
        case GatewayKey():
            return Active(fields.text("node", bounds.NODE_NAME_MAX, bounds.is_node_name))
        case HeardKey():
            return Heard(key.node)
        case ExposedKey(at, protocol, port):
            uid = fields.integer("uid", 0, bounds.UID_MAX)
            name = fields.text("reservation", bounds.RESERVATION_MAX, is_reservation)
            return Exposure(at, protocol, port, uid, name)
        case RangesKey():
            return _guard(fields)


def _node(name: str, fields: Fields) -> Node:
    is_said = fields.has("gateway")
    if is_said and not fields.take("gateway", bool):
        raise FieldError("gateway is left out of a node that is none")
    mtu = fields.integer("mtu", bounds.MTU_MIN, bounds.MTU_MAX)
    return Node(name, fields.address("address"), mtu, is_said)


def _user(uid: int, fields: Fields) -> User:
    legs = [
        (node, leg)
        for nodes, run in fields.take("legs", dict).items()
        for node, leg in _pairs("legs", unfold(nodes), _addresses("legs", [run]))
    ]
    user = User(
        uid,
        fields.text("name", bounds.USER_NAME_MAX, bounds.is_user_name),
        fields.integer("vni", 1, bounds.VNI_MAX),
        tuple(network("blocks", block) for block in fields.take("blocks", list)),
        dict(legs),
        _reserved(fields.take("reserved", dict)),
        address("cursor", cursor) if (cursor := fields.take("cursor", str, type(None))) is not None else None,
    )
    given = [leg for _, leg in legs] + list(user.reserved.values())
    if len(user.legs) != len(legs) or len(set(given)) != len(given):
        raise FieldError("a node has two legs, or two things have one address")
    _check_blocks(user.blocks, given)
    return user


def _job(number: int, fields: Fields) -> Job:
    nodes = unfold(fields.text("nodes", _LIST_MAX))
    driver = fields.choice("driver", Driver)
    addresses = _addresses("addresses", fields.take("addresses", list))
    _pairs("addresses", nodes if _has_addresses(driver) else (), addresses)
    if len(set(addresses)) != len(addresses):
        raise FieldError("addresses has one twice")
    return Job(
        number,
        fields.integer("uid", 0, bounds.UID_MAX),
        fields.text("name", bounds.JOB_NAME_MAX),
        driver,
        nodes,
        tuple(addresses),
        fields.text("reservation", bounds.RESERVATION_MAX, lambda text: not text or is_reservation(text)),
    )


def _has_addresses(driver: Driver) -> bool:
    return driver is Driver.NONE or definition(driver).has_addresses


def _guard(fields: Fields) -> Guard:
    pods = fields.network("pods")
    ranges = Ranges(
        pods,
        fields.integer("block_prefix", pods.prefixlen, BLOCK_PREFIX_MAX),
        first := fields.integer("vni_first", 1, bounds.VNI_MAX),
        fields.integer("vni_last", first, bounds.VNI_MAX),
    )
    return Guard(ranges, fields.integer("serial", 0, 2**63))


def _reserved(values: Mapping[str, Any]) -> dict[str, IPv4Address]:
    wrong = next((name for name in values if not is_reservation(name)), None)
    if wrong is not None:
        raise FieldError(f"reserved cannot hold {shown(wrong)}")
    return {name: address("reserved", text) for name, text in values.items()}


def _pairs(name: str, nodes: tuple[str, ...], found: list[IPv4Address]) -> Iterable[tuple[str, IPv4Address]]:
    if len(nodes) != len(found):
        raise FieldError(f"{name} has {len(found)} addresses for {len(nodes)} nodes")
    return zip(nodes, found, strict=True)


def _check_blocks(blocks: Iterable[IPv4Network], given: Iterable[IPv4Address]) -> None:
    spans = sorted((int(block.network_address), int(block.broadcast_address)) for block in blocks)
    if any(last < first + 3 for first, last in spans) or any(a[1] >= b[0] for a, b in pairwise(spans)):
        raise FieldError("blocks has one that is too small, or two that overlap")
    outside = next((each for each in given if not any(first < int(each) < last for first, last in spans)), None)
    if outside is not None:
        raise FieldError(f"{outside} is in none of its blocks")


def _runs(addresses: Iterable[IPv4Address]) -> list[list[IPv4Address]]:
    """Split addresses, in their order, into runs that count up by one."""
    runs: list[list[IPv4Address]] = []
    following = -1
    for each in addresses:
        number = int(each)
        if number == following:
            runs[-1].append(each)
        else:
            runs.append([each])
        following = number + 1
    return runs


def _run(run: list[IPv4Address]) -> str:
    return str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}"


def _addresses(name: str, runs: Iterable[object]) -> list[IPv4Address]:
    """Undo `_run` for each."""
    found: list[IPv4Address] = []
    for text in runs:
        first, dash, last = text.partition("-") if isinstance(text, str) else (text, "", "")
        start = int(address(name, first))
        end = int(address(name, last)) if dash else start
        if not start <= end < start + NODES_MAX - len(found):
            raise FieldError(f"{name} holds {shown(text)}, which ends before it begins or is too long")
        found += map(IPv4Address, range(start, end + 1))
    return found
