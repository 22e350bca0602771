"""Values of etcd."""

import json
from dataclasses import replace
from ipaddress import IPv4Address, IPv4Network

import pytest

from isthmus.model.network import Active, Attachment, Driver, Exposure, Heard, Job, Lease, Node, Ranges, Transport, User
from isthmus.network.state.codec import Guard, decode, encode, key_of
from isthmus.network.state.keys import Keys, StoredError

KEYS = Keys("blue")
BLOCK = IPv4Network("10.64.0.0/24")


def at(number):
    return BLOCK[number]


NODE = Node("c1", IPv4Address("192.0.2.1"), 9000)
LEGS = {"c2": at(6), "c1": at(5), "login": at(9), "c3": at(7)}
USER = User(1001, "DOM\\alice", 4096, (BLOCK,), LEGS, {"web": at(200)}, at(9))
JOB = Job(7, 1001, "a \u2603 name", Driver.PRIVATE, ("c1", "c2", "x"), (at(200), at(1), at(2)), "web")
LEASE = Lease(1001, "login", 1_700_000_000)
FLAT = Job(8, 1001, "flat", Driver.FLANNEL, ("c1", "c2"), ())
ATTACHMENT = Attachment(8, "c1", IPv4Address("10.128.1.2"))
GUARD = Guard(Ranges(IPv4Network("10.64.0.0/12"), 24, 4096, 5000), 3)
EMPTY = User(0, "root", 1)
GATEWAY = Node("g1", IPv4Address("192.0.2.9"), gateway=True)
ACTIVE = Active("g1")
HEARD = Heard("g1")
EXPOSURE = Exposure(IPv4Address("198.51.100.10"), Transport.UDP, 53, 1001, "web")


def written(value, **changed):
    """Return a value's text with some fields changed, `...` for gone."""
    fields = {**json.loads(encode(value)), **changed}
    return json.dumps({name: field for name, field in fields.items() if field is not ...})


def read(value, text):
    return decode(KEYS, KEYS.path(key_of(value)), text)


@pytest.mark.parametrize(
    "value", [NODE, USER, JOB, LEASE, FLAT, ATTACHMENT, GUARD, EMPTY, GATEWAY, ACTIVE, HEARD, EXPOSURE]
)
def test_value_comes_back(value):
    assert read(value, encode(value)) == value


def test_what_counts_up_is_folded():
    legs = {f"c{number}": IPv4Address("10.64.16.0") + number for number in range(1, 4001)}
    nodes, addresses = zip(*legs.items(), strict=True)
    user = User(1, "a", 1, (IPv4Network("10.64.0.0/18"),), legs)
    job = Job(1, 1, "a", Driver.PRIVATE, nodes, addresses)
    assert json.loads(encode(user))["legs"] == {"c[1-4000]": "10.64.16.1-10.64.31.160"}
    assert json.loads(encode(job))["addresses"] == ["10.64.16.1-10.64.31.160"]
    assert read(job, encode(job)) == job


def test_node_that_is_no_gateway_is_written_as_before_there_were_any():
    assert json.loads(encode(NODE)) == {"schema": 1, "address": "192.0.2.1", "mtu": 9000}


def test_equal_users_are_written_alike():
    legs, reserved = dict(reversed(LEGS.items())), {"b": at(20), "a": at(21)}
    one = replace(USER, legs=LEGS, reserved=reserved)
    other = replace(USER, legs=legs, reserved=dict(sorted(reserved.items())))
    assert encode(one) == encode(other)


@pytest.mark.parametrize("value", [NODE, USER, JOB, LEASE, GUARD, GATEWAY, ACTIVE, EXPOSURE])
@pytest.mark.parametrize("wrong", [None, True, 1.5, -1, "", "x", [], {}, [None], {"a": 1}, ...])
def test_each_field_is_held_to_its_type(value, wrong):
    """A few of these are right for a field: those are read, and written the same again."""
    for name in json.loads(encode(value)):
        text = written(value, **{name: wrong})
        try:
            again = read(value, text)
        except StoredError as error:
            assert error.key == KEYS.path(key_of(value))
        else:
            assert json.loads(encode(again)) == json.loads(text)


@pytest.mark.parametrize(
    ("value", "changed"),
    [
        (NODE, {"schema": 2}),
        (NODE, {"schema": ...}),
        (NODE, {"more": 1}),
        (NODE, {"address": "::1"}),
        (NODE, {"mtu": 500}),
        (USER, {"vni": 2**24}),
        (USER, {"blocks": ["10.64.0.1/24"]}),
        (USER, {"blocks": ["10.64.0.0/24", "10.64.0.0/25"]}),
        (USER, {"blocks": []}),
        (USER, {"legs": {"c1": "10.65.0.1"}}),
        (USER, {"legs": {"c1": "10.64.0.0"}}),
        (USER, {"legs": {"c[1-2]": "10.64.0.1"}}),
        (USER, {"legs": {"c[1-2]": "10.64.0.2-10.64.0.1"}}),
        (USER, {"legs": {"c[1-2]": "0.0.0.0-255.255.255.255"}}),
        (USER, {"legs": {"c1": "10.64.0.1", "c[1-2]": "10.64.0.2-10.64.0.3"}}),
        (USER, {"legs": {"c1": "10.64.0.1", "c2": "10.64.0.1"}}),
        (USER, {"legs": {"c1": "10.64.0.200"}}),
        (USER, {"legs": {"../c1": "10.64.0.1"}}),
        (USER, {"reserved": {"Web": "10.64.0.1"}}),
        (EMPTY, {"blocks": ["10.64.0.0/31"]}),
        (JOB, {"nodes": "c[1-2]"}),
        (JOB, {"nodes": "c1,c1,c2"}),
        (JOB, {"addresses": ["10.64.0.1", "10.64.0.1-10.64.0.2"]}),
        (FLAT, {"addresses": ["10.64.0.1-10.64.0.2"]}),
        (ATTACHMENT, {"address": "10.128.1.2/24"}),
        (JOB, {"driver": "bridge"}),
        (JOB, {"uid": -1}),
        (JOB, {"name": "\ud800"}),
        (JOB, {"reservation": "7"}),
        (GATEWAY, {"gateway": False}),
        (ACTIVE, {"node": "../g1"}),
        (EXPOSURE, {"reservation": "7"}),
        (EXPOSURE, {"port": 53}),
        (GUARD, {"block_prefix": 31}),
        (GUARD, {"block_prefix": 11}),
        (GUARD, {"vni_first": 5001}),
    ],
)
def test_what_cannot_be_true_is_refused(value, changed):
    with pytest.raises(StoredError, match=f"etcd key {KEYS.path(key_of(value))}: "):
        read(value, written(value, **changed))


def test_huge_document_is_refused_at_once():
    with pytest.raises(StoredError, match="too long"):
        read(JOB, written(JOB, addresses=["10.0.0.0-10.0.255.255"] * 1000))
