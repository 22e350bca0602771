"""The daemon's settings as the role writes them."""

import json
from ipaddress import IPv4Address, IPv4Network, IPv6Network

import pytest

from isthmus.filters.network.gateways import network_gateways
from isthmus.model.network import Driver, Node, Transport
from isthmus.model.networks.wireguard import Program
from isthmus.network.drivers.flannel.rules import Backend, Flannel
from isthmus.network.encryption.settings import EncryptionSettings
from isthmus.network.gateways.settings import Gateways, Ingress, Outside
from isthmus.network.logins.numbers import Logins
from isthmus.network.settings import SettingsError, read

REPORTED = {
    "schema": 1,
    "cluster": "blue",
    "node": "c1",
    "address": "10.0.0.1",
    "mtu": 0,
    "releases": False,
    "slurm_prefix": "/usr",
    "lease_idle_s": 3600,
    "lease_ttl_s": 60,
    "ranges": {"pods": "10.64.0.0/10", "block_prefix": 24, "vni_first": 1, "vni_last": 9},
    "etcd": {"endpoints": [], "ca": "a", "certificate": "b", "key": "c", "user": "networkd"},
    "dns": {"domain": "blue", "upstreams": [], "search": [], "host": "none"},
    "flannel": {"range": "10.128.0.0/12", "backend": "host-gw", "plugins": "/p", "list": "/l"},
    "rules": {},
    "services": "10.96.0.0/16",
}


@pytest.fixture
def settings(tmp_path):
    def call(**changes):
        (tmp_path / "password").write_text("secret\n")
        reported = {**REPORTED, **changes}
        reported["etcd"] = {**reported["etcd"], "password_file": str(tmp_path / "password")}
        (tmp_path / "network.json").write_text(json.dumps(reported))
        return read(tmp_path / "network.json")

    return call


def test_range_of_ipv6_is_read(settings):
    assert settings().ipv6 is settings(ipv6_range="").ipv6 is settings().dns.ipv6 is settings().beginning is None
    found = settings(ipv6_range="fd12:3456:789a::/48")
    assert found.ipv6 == IPv6Network("fd12:3456:789a::/48")
    assert found.beginning == found.dns.ipv6 == IPv6Network("fd12:3456:789a::/96")
    with pytest.raises(SettingsError, match="no room for an IPv4 address"):
        settings(ipv6_range="fd12:3456:789a::/112")


def test_flannel_is_read(settings):
    found = settings()
    assert found.shared[Driver.FLANNEL].network == Flannel(IPv4Network("10.128.0.0/12"), Backend.HOST_GW)
    assert found.dns.shared[Driver.FLANNEL] == IPv4Network("10.128.0.0/12")


def test_cluster_without_flannel_has_none(settings):
    found = settings(flannel={})
    assert (found.shared, found.dns.shared) == ({}, {})


def test_login_pods_are_read(settings):
    reported = {"ports": "20000-20999", "ports_each": 100, "host_ports": [22], "linger_s": 5, "tmp_mib": 64}
    assert settings().logins is None
    assert settings(logins={}).logins is None
    found = settings(logins={**reported, "slurm_user": "root", "here": True}).logins
    assert found == Logins(20000, 20999, 100, (22,), 0, 5.0, 64, is_here=True)


def test_encryption_is_read_and_takes_room_from_every_packet(settings):
    assert settings().encryption is None
    assert settings(encryption={}).encryption is None
    asked = {"kind": "wireguard", "program": "wireguard-go", "port": 5, "key_days": 2}
    assert settings(encryption={**asked, "kind": "none"}).encryption is None
    found = settings(encryption=asked)
    assert found.encryption == EncryptionSettings(5, Program.WIREGUARD_GO, 172_800)
    assert (settings().member(1500).mtu, found.member(1500).mtu) == (1500, 1440)
    assert settings(encryption=asked, mtu=1300).member(1500).mtu == 1350


@pytest.mark.parametrize(
    ("changes", "reported"),
    [
        ({"encryption": {"kind": "ipsec"}}, "'ipsec' is not a valid Encryption"),
        ({"encryption": {"kind": "wireguard"}}, "'port' is missing"),
        ({"schema": 2}, "schema 2, this version reads 1"),
        ({"flannel": {"range": "10.128.0.0/12"}}, "'backend' is missing"),
        ({"flannel": {**REPORTED["flannel"], "backend": "udp"}}, "'udp' is not a valid Backend"),
        ({"address": "c1"}, "'c1'"),
    ],
)
def test_settings_that_cannot_be_used_are_refused_with_the_remedy(settings, changes, reported):
    with pytest.raises(SettingsError, match=rf"{reported}.*; run playbooks/network\.yml"):
        settings(**changes)


def test_gateways_are_read(settings):
    """As the role's filter writes them."""
    rule = {"action": "allow", "to": "web.alice:443", "from": "192.0.2.0/24"}
    given = network_gateways(
        [rule, {"action": "deny", "to": "*", "protocol": "udp"}],
        [{"addresses": "198.51.100.10-198.51.100.12", "users": ["alice"]}, {"addresses": "198.51.100.20"}],
        [{"name": "alice", "uid": 1001}],
    )
    first, last, site = (IPv4Address(f"198.51.100.{number}") for number in (10, 12, 20))
    wanted = Gateways(
        (Outside(first, last, frozenset({1001})), Outside(site, site)),
        (
            Ingress(True, IPv4Network("192.0.2.0/24"), Transport.TCP, 443, 443, 1001, "web"),
            Ingress(False, IPv4Network("0.0.0.0/0"), Transport.UDP, 1, 65535),
        ),
        is_here=True,
    )
    found = settings(gateways={**given, "here": True})
    assert found.gateways == wanted
    assert found.member(1500) == Node("c1", IPv4Address("10.0.0.1"), gateway=True)
    assert not settings(gateways={**given, "here": False}).member(1500).gateway
    assert settings().gateways is settings(gateways={}).gateways is None
