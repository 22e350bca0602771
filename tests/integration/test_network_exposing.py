"""Users who open ports to the outside, and root, ask a daemon; over a real etcd."""

from ipaddress import IPv4Address, IPv4Network

import pytest

from isthmus.model.network import Transport
from isthmus.network.api.messages import Expose, List, Reserve, Status, Unreserve, Withdraw
from isthmus.network.gateways.settings import Gateways, Ingress, Outside
from tests.support.networks.daemons import ALICE, BOB, code, two_hosts
from tests.support.wait import wait

SEEN = IPv4Address("198.51.100.10")
ANYWHERE = IPv4Network("0.0.0.0/0")
GATEWAYS = Gateways(
    (Outside(SEEN, SEEN),),
    (
        Ingress(True, ANYWHERE, Transport.TCP, 443, 443, ALICE, "web"),
        Ingress(True, ANYWHERE, Transport.TCP, 8000, 8100),
    ),
)


@pytest.fixture
def host(cluster, tmp_path, monkeypatch):
    names = {ALICE: "alice", BOB: "bob"}
    monkeypatch.setattr("isthmus.network.api.operations._login", names.__getitem__)
    with two_hosts(cluster, tmp_path, GATEWAYS) as made:
        for uid in names:
            assert made[0].ask(Reserve("web"), uid)["ok"]
        yield made[0]


def opened(host, uid):
    wait(lambda: host.view.snapshot.state.revision == host.store.load().state.revision)
    return [(each["user"], each["outside"]) for each in host.ask(List(), uid)["exposed"]]


def test_rule_lets_its_user_open_a_port_and_nobody_else(host):
    assert host.ask(Expose("web", 443), ALICE)["outside"] == "198.51.100.10:443"
    refused = host.ask(Expose("web", 443), BOB)
    assert (code(refused), "network_ingress" in refused["error"]["message"]) == ("full", True)
    assert code(host.ask(Expose("web", 443, uid=ALICE), BOB)) == "forbidden"
    assert code(host.ask(Expose("web", 22), ALICE)) == "full"
    assert code(host.ask(Expose("web", 443, Transport.UDP), ALICE)) == "full"
    assert opened(host, 0) == [("alice", "198.51.100.10:443")]


def test_user_sees_and_closes_his_own_and_root_all(host):
    host.ask(Expose("web", 443), ALICE)
    host.ask(Expose("web", 8000), BOB)
    alices, bobs = ("alice", "198.51.100.10:443"), ("bob", "198.51.100.10:8000")
    assert [opened(host, uid) for uid in (ALICE, BOB, 0)] == [[alices], [bobs], [alices, bobs]]
    assert host.ask(Withdraw("web", 443), BOB)["withdrawn"] is False
    assert host.ask(Withdraw("web", 8000), ALICE)["withdrawn"] is False
    assert host.ask(Withdraw("web", 443, uid=ALICE))["withdrawn"]
    assert host.ask(Withdraw("web", 8000), BOB)["withdrawn"]
    assert opened(host, 0) == []


def test_port_of_another_user_is_taken(host):
    assert host.ask(Expose("web", 8000), BOB)["new"]
    assert not host.ask(Expose("web", 8000), BOB)["new"]
    refused = host.ask(Expose("web", 8000), ALICE)
    assert "another user's" in refused["error"]["message"]


def test_reservation_that_a_rule_names_stays(host):
    refused = host.ask(Unreserve("web"), ALICE)
    assert (code(refused), "an admin takes the rule out first" in refused["error"]["message"]) == ("invalid", True)
    assert host.ask(Unreserve("web"), BOB)["dropped"]


def test_status_says_that_none_leads_out(host):
    assert host.ask(Status(), ALICE)["gateway"] == "none yet"


def test_cluster_without_gateways_says_so(cluster, tmp_path, monkeypatch):
    monkeypatch.setattr("isthmus.network.api.operations._login", lambda uid: "alice")
    with two_hosts(cluster, tmp_path) as (host, _):
        assert "no gateways" in host.ask(Expose("web", 443), ALICE)["error"]["message"]
        assert host.ask(Reserve("web"), ALICE)["ok"]
        assert host.ask(Unreserve("web"), ALICE)["dropped"]
        assert not {"exposed", "gateway"} & {*host.ask(List(), ALICE), *host.ask(Status(), ALICE)}
