"""What a daemon of 0.1.0 reads: only that is written as long as one is among the members."""

import json
import re
from ipaddress import IPv4Address, IPv4Network

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from isthmus.model.network import Active, Attachment, Driver, Exposure, Heard, Job, Lease, Node, Ranges, Transport, User
from isthmus.network.bounds import JOB_MAX, UID_MAX
from isthmus.network.state import forms
from isthmus.network.state.codec import Guard, decode, encode, key_of
from isthmus.network.state.keys import Keys

KEYS = Keys("blue")
# Keys of 0.1.0, and the fields of each; none may lack, and no other one be there.
FIRST = {
    r"nodes/[^/]+": {"address", "mtu"},
    r"users/\d+": {"name", "vni", "blocks", "legs", "reserved", "cursor"},
    r"jobs/\d+": {"uid", "name", "driver", "nodes", "addresses", "reservation"},
    r"leases/\d+/[^/]+": {"since_s"},
    r"attachments/\d+/[^/]+": {"address"},
    "ranges": {"serial", "pods", "block_prefix", "vni_first", "vni_last"},
}
DRIVERS = {"private", "flannel", "none"}

NAMES = some.from_regex(r"[a-z][a-z0-9]{0,8}", fullmatch=True)
ADDRESSES = some.ip_addresses(v=4)
UIDS, JOBS = some.integers(0, UID_MAX), some.integers(1, JOB_MAX)


def jobs(driver, addresses):
    fields = {"nodes": some.just(("c1", "c2")), "addresses": some.just(addresses), "driver": some.just(driver)}
    return some.builds(Job, id=JOBS, uid=UIDS, name=NAMES, **fields)


VALUES = some.one_of(
    some.builds(Node, name=NAMES, address=ADDRESSES, mtu=some.integers(1280, 9000), gateway=some.booleans()),
    some.builds(User, uid=UIDS, name=NAMES, vni=some.integers(1, 2**24 - 1)),
    jobs(Driver.PRIVATE, (IPv4Address("10.64.0.1"), IPv4Address("10.64.0.9"))),
    jobs(Driver.FLANNEL, ()),
    jobs(Driver.ROUTED, ()),
    some.builds(Lease, uid=UIDS, node=NAMES, since_s=some.integers(0, 2**40)),
    some.builds(Attachment, job=JOBS, node=NAMES, address=ADDRESSES),
    some.builds(Guard, ranges=some.just(Ranges(IPv4Network("10.64.0.0/12"))), serial=some.integers(0, 2**40)),
    some.builds(Active, node=NAMES),
    some.builds(Heard, node=NAMES),
    some.builds(
        Exposure,
        address=ADDRESSES,
        protocol=some.sampled_from(Transport),
        port=some.integers(1, 65535),
        uid=UIDS,
        reservation=NAMES,
    ),
)


def is_read_by_the_first(value):
    """Return whether 0.1.0 knows the key and each field."""
    below = KEYS.path(key_of(value)).removeprefix(KEYS.prefix)
    written = json.loads(encode(value))
    known = next((fields for key, fields in FIRST.items() if re.fullmatch(key, below)), None)
    return known is not None and written.keys() == known | {"schema"} and written.get("driver", "none") in DRIVERS


@settings(max_examples=300, deadline=None)
@given(VALUES)
def test_form_says_who_can_read_a_value(value):
    assert is_read_by_the_first(value) == (forms.of(value) == forms.FIRST)
    assert forms.of(value) <= forms.FORM


@settings(max_examples=100, deadline=None)
@given(VALUES)
def test_every_form_is_read_here(value):
    assert decode(KEYS, KEYS.path(key_of(value)), encode(value)) == value


class Etcd:
    """The forms that members have published."""

    def __init__(self, **found):
        self.found, self.asked = found, 0

    def range(self, prefix):
        self.asked += 1
        entry = type("Entry", (), {})
        entries = {}
        for node, text in self.found.items():
            entries[prefix + node] = entry()
            entries[prefix + node].key, entries[prefix + node].value = prefix + node, text
        return type("Found", (), {"entries": entries})


@pytest.mark.parametrize(
    ("published", "older"),
    [
        ({"c1": "2", "c2": "2"}, []),
        ({"c1": "2", "c2": "3"}, []),
        ({"c1": "2"}, ["c2"]),
        ({"c1": "2", "c2": "1"}, ["c2"]),
        ({"c1": "", "c2": "-2"}, ["c1", "c2"]),
        ({"c1": "two", "c2": "9" * 99, "gone": "1"}, ["c1", "c2"]),
    ],
)
def test_members_that_are_older(published, older):
    found = forms.Forms(Etcd(**published), "blue")
    assert found.older(["c1", "c2"], 2) == older
    assert found.older(["c1", "c2"], 1) == []


def test_members_that_read_the_newest_form_are_asked_for_once():
    etcd = Etcd(c1="2", c2="2")
    found = forms.Forms(etcd, "blue")
    assert [found.older(["c1", "c2"], 2) for _ in range(3)] == [[]] * 3
    assert etcd.asked == 1
    assert found.older(["c1", "c3"], 2) == ["c3"]
