"""Whose keys are trusted: what a node's own identity has signed, and nothing that another could write."""

import json
from ipaddress import IPv4Address

import pytest

from isthmus.clients.etcd.store import Changes, Entry, Event, Found
from isthmus.clients.wireguard.keys import new_pair
from isthmus.model.networks.wireguard import Peer
from isthmus.network.encryption.records import Book, Records, Statement, certificate_of, encode
from isthmus.support.certificates import Usage
from tests.support.files.certificates import authority
from tests.support.networks.wires import AUTHORITIES, CLUSTER, certified

C1, C2, EVIL = IPv4Address("192.0.2.1"), IPv4Address("192.0.2.2"), IPv4Address("192.0.2.66")
RECORDS = Records(None, CLUSTER)  # type: ignore[arg-type]
KEY, OTHER = new_pair().public, new_pair().public
OF_C1, OF_C2 = certified("c1", C1), certified("c2", C2)


def record(identity=OF_C1, node="c1", key=KEY, address=C1, made_s=100, cluster=CLUSTER):
    return encode(Statement(node, Peer(key, address), made_s), cluster, identity)


def book(**records):
    """A book with records, written in this order."""
    made = Book(RECORDS, AUTHORITIES)
    entries = {
        RECORDS.prefix + node: Entry(RECORDS.prefix + node, text, at)
        for at, (node, text) in enumerate(records.items(), 1)
    }
    made.begin(Found(entries, len(entries)))
    return made


def change(made, node, text, revision=50):
    made.advance(Changes(revision, (Event(RECORDS.prefix + node, text, revision),)))


def test_what_a_node_has_signed_is_trusted():
    made = book(c1=record(), c2=record(OF_C2, "c2", OTHER, C2))
    assert {node: each.peer for node, each in made.trusted().items()} == {"c1": Peer(KEY, C1), "c2": Peer(OTHER, C2)}
    assert made.refused == {}


def tampered(**changes):
    """A record of c1 whose statement somebody has changed without its key."""
    found = json.loads(record())
    found["statement"] = json.dumps({**json.loads(found["statement"]), **changes})
    return json.dumps(found)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        # c2, or somebody with its key, writes c1's record.
        (record(OF_C2), "its certificate is another node's"),
        (record(OF_C2, address=C2), "its certificate is another node's"),
        (record(OF_C2, "c2", address=C2), "it is of another node or cluster"),
        (record(cluster="other"), "it is of another node or cluster"),
        (record(certified("c1", C1, authority("evil CA"))), "is not of this cluster's CA"),
        (record(certified("c1", C1, authority("test CA"))), "is not of this cluster's CA"),
        (record(address=EVIL), "does not have the address 192.0.2.66"),
        (record(certified("c1", C1, usage=Usage.SERVER)), "is for another use"),
        (tampered(public_key=OTHER), "not signed by the key of its certificate"),
        (tampered(port=1), "not signed by the key of its certificate"),
        (tampered(more=1), "more"),
        (record(key="A" * 44), "public_key cannot be"),
        ("{}", "schema is missing"),
        ("x", "not JSON"),
        ("[" * 100_000, "longer than 16384"),
        (record()[:-2], "not JSON"),
    ],
)
def test_what_is_not_the_nodes_is_refused_with_the_reason(text, why):
    made = book(c1=text, c2=record(OF_C2, "c2", OTHER, C2))
    assert list(made.trusted()) == ["c2"]
    assert why in made.refused["c1"]
    assert made.displaced == set()


def replaced(**changes):
    return json.dumps({**json.loads(record()), **changes})


@pytest.mark.parametrize(
    "text",
    [
        replaced(certificate=""),
        replaced(certificate=OF_C1.certificate[:200]),
        replaced(certificate="-----BEGIN CERTIFICATE-----\n" + "A" * 64 + "\n-----END CERTIFICATE-----\n"),
        replaced(certificate=OF_C1.certificate.replace("A", "B", 40)),
        replaced(certificate="\0" * 9000),
        replaced(signature=""),
        replaced(signature="é"),
        replaced(signature="AAAA"),
        replaced(statement="{}"),
        replaced(statement="[" * 1000),
        replaced(statement='{"made_s":' + "9" * 900 + "}"),
        json.dumps([record()]),
        "\ud800",
    ],
)
def test_hostile_bytes_are_refused_and_end_nothing(text):
    made = book(c1=text, c2=record(OF_C2, "c2", OTHER, C2))
    assert list(made.trusted()) == ["c2"]
    assert made.refused["c1"]


def test_forged_record_takes_the_place_of_no_other_nodes_key():
    made = book(c1=record(), c2=record(OF_C2, "c2", OTHER, C2))
    change(made, "c1", record(OF_C2, key=new_pair().public))
    assert list(made.trusted()) == ["c2"]
    change(made, "c1", record(), 51)
    assert set(made.trusted()) == {"c1", "c2"}


def test_record_that_was_replaced_is_not_trusted_again():
    made = book(c1=record(made_s=100))
    change(made, "c1", record(key=OTHER, made_s=101))
    assert made.trusted()["c1"].peer.public_key == OTHER
    change(made, "c1", record(made_s=100), 51)
    assert (made.trusted(), made.refused) == ({}, {"c1": "it is older than one that was seen before"})


@pytest.mark.parametrize("first", ["c1", "c2"])
def test_of_two_nodes_with_one_key_the_first_is_trusted(first):
    records = {"c1": record(), "c2": record(OF_C2, "c2", KEY, C2)}
    made = book(**{name: records[name] for name in sorted(records, key=lambda name: name != first)})
    second = ({*records} - {first}).pop()
    assert list(made.trusted()) == [first]
    assert made.displaced == {second}
    assert first in made.refused[second]


def test_record_that_is_gone_is_no_peer():
    made = book(c1=record())
    change(made, "c1", None)
    assert (made.trusted(), made.texts) == ({}, {})
    made = book(c1=record())
    made.begin(Found({}, 9))
    assert made.trusted() == {}


def test_names_that_no_node_has_are_passed_over():
    made = book(**{"../c1": record(), "a b": record()})
    assert (made.trusted(), made.refused, made.texts) == ({}, {}, {})


def test_certificate_that_ended_is_no_longer_trusted():
    made = book(c1=record(certified("c1", C1, days=0)))
    assert made.trusted() == {}
    assert "out of date" in made.refused["c1"]


def test_certificate_of_a_record():
    assert certificate_of(record()) == OF_C1.certificate
    assert certificate_of("x") == certificate_of("{}") == ""


def test_keys_show_no_private_part():
    pair = new_pair()
    assert repr(pair) == f"KeyPair(public={pair.public!r})"
    assert "key" not in repr(OF_C1)
