"""The daemon's settings as the role writes them."""

import json
from ipaddress import IPv4Network

import pytest

from isthmus.model.network import Driver
from isthmus.network.drivers.flannel.rules import Backend, Flannel
from isthmus.network.settings import SettingsError, read

TOLD = {
    "schema": 1,
    "cluster": "blue",
    "node": "c1",
    "address": "10.0.0.1",
    "mtu": 0,
    "releases": False,
    "slurm_prefix": "/usr",
    "lease_idle_s": 3600,
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
        told = {**TOLD, **changes}
        told["etcd"] = {**told["etcd"], "password_file": str(tmp_path / "password")}
        (tmp_path / "network.json").write_text(json.dumps(told))
        return read(tmp_path / "network.json")

    return call


def test_flannel_is_read(settings):
    found = settings()
    assert found.shared[Driver.FLANNEL].network == Flannel(IPv4Network("10.128.0.0/12"), Backend.HOST_GW)
    assert found.dns.shared[Driver.FLANNEL] == IPv4Network("10.128.0.0/12")


def test_cluster_without_flannel_has_none(settings):
    found = settings(flannel={})
    assert (found.shared, found.dns.shared) == ({}, {})


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"schema": 2}, "schema 2, this version reads 1"),
        ({"flannel": {"range": "10.128.0.0/12"}}, "'backend' is missing"),
        ({"flannel": {**TOLD["flannel"], "backend": "udp"}}, "'udp' is not a valid Backend"),
        ({"address": "c1"}, "'c1'"),
    ],
)
def test_settings_that_cannot_be_used_are_refused_with_the_remedy(settings, changes, told):
    with pytest.raises(SettingsError, match=rf"{told}.*; run playbooks/network\.yml"):
        settings(**changes)
