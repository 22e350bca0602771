"""What users may open to the outside, and what they are told."""

from dataclasses import replace
from ipaddress import IPv4Address, IPv4Network

import pytest

from isthmus.model.network import Exposure, State, Transport, User
from isthmus.network.gateways.exposing import ExposeError, is_permitted, shown, wanted
from isthmus.network.gateways.settings import Gateways, Ingress, Outside

ALICE, BOB = 1001, 1002
SEEN = IPv4Address("198.51.100.10")
ANYWHERE, NEAR = IPv4Network("0.0.0.0/0"), IPv4Network("192.0.2.0/24")
TCP = Transport.TCP
WEB = Ingress(True, ANYWHERE, TCP, 443, 443, ALICE, "web")
HIGH = Ingress(True, NEAR, TCP, 8000, 8100)
GATEWAYS = Gateways((Outside(SEEN, SEEN),), (WEB, HIGH))


@pytest.mark.parametrize(
    ("uid", "name", "protocol", "port", "permitted"),
    [
        (ALICE, "web", TCP, 443, True),
        (ALICE, "db", TCP, 443, False),
        (BOB, "web", TCP, 443, False),
        (ALICE, "web", Transport.UDP, 443, False),
        (BOB, "any", TCP, 8100, True),
        (BOB, "any", TCP, 8101, False),
    ],
)
def test_rule_is_needed(uid, name, protocol, port, permitted):
    assert is_permitted(GATEWAYS, uid, name, protocol, port) is permitted


def test_denial_before_ends_it_if_it_is_for_all():
    denied = Ingress(False, ANYWHERE, TCP, 1, 65535, ALICE)
    assert not is_permitted(replace(GATEWAYS, ingress=(denied, WEB)), ALICE, "web", TCP, 443)
    assert is_permitted(replace(GATEWAYS, ingress=(replace(denied, source=NEAR), WEB)), ALICE, "web", TCP, 443)


@pytest.mark.parametrize(
    ("gateways", "uid", "message"),
    [
        (None, ALICE, "no gateways"),
        (GATEWAYS, BOB, "an admin adds one to network_ingress$"),
        (replace(GATEWAYS, outside=()), ALICE, "network_outside_addresses$"),
        (Gateways(), ALICE, "network_outside_addresses$"),
    ],
)
def test_refusal_says_what_an_admin_can_do(gateways, uid, message):
    with pytest.raises(ExposeError, match=message):
        wanted(gateways, uid, "user", "web", TCP, 443)


def test_port_is_opened_at_the_users_own_address():
    own = Outside(SEEN + 1, SEEN + 2, frozenset({ALICE}))
    gateways = replace(GATEWAYS, outside=(*GATEWAYS.outside, own))
    assert wanted(gateways, ALICE, "alice", "web", TCP, 443) == Exposure(SEEN + 1, TCP, 443, ALICE, "web")
    assert wanted(gateways, BOB, "bob", "x", TCP, 8000).address == SEEN


def test_list_shows_ones_own_and_root_all_with_what_is_in_the_way():
    opened = [
        Exposure(SEEN, TCP, 443, ALICE, "web"),
        Exposure(SEEN, TCP, 80, ALICE, "web"),
        Exposure(SEEN, TCP, 8000, BOB, "x"),
    ]
    old = Exposure(SEEN + 9, TCP, 8001, BOB, "x")
    users = {ALICE: User(ALICE, "alice", 1), BOB: User(BOB, "bob", 2)}
    state = State(users=users, exposed={each.door: each for each in (*opened, old)})

    def states(uid, gateways=GATEWAYS):
        return [
            (each["user"], each["outside"], each["state"].partition(";")[0]) for each in shown(state, gateways, uid)
        ]

    alices = [
        ("alice", "198.51.100.10:80", "no rule lets anybody in"),
        ("alice", "198.51.100.10:443", "open"),
    ]
    bobs = [("bob", "198.51.100.10:8000", "open"), ("bob", "198.51.100.19:8001", "the outside address changed")]
    assert states(ALICE) == alices
    assert states(None) == [*alices, *bobs]
    assert {each for *_, each in states(None, None)} == {"no gateways"}
