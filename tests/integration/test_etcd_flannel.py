"""Flannel's configuration in a real etcd, as the user flannel may write it."""

import json

import pytest

from isthmus.clients.etcd.flannel import RefusedError, apply
from isthmus.clients.etcd.store import DeniedError, Etcd
from isthmus.clients.etcd.wire import prefix_range
from isthmus.filters.drivers.flannel.files import network_flannel_config
from tests.support.servers.etcd import FLANNEL_PREFIX, PREFIX

CONFIG = network_flannel_config("10.128.0.0/12", 24, "vxlan")
KEY = f"{FLANNEL_PREFIX}config"


@pytest.fixture
def etcd(cluster):
    etcd = Etcd(cluster.access("flannel"))
    etcd.call("kv/deleterange", prefix_range(FLANNEL_PREFIX))
    yield etcd
    etcd.close()


@pytest.fixture
def bring(cluster, etcd):
    def call(config=CONFIG, owner="isthmus 10.0.0.1", **changes):
        return apply(cluster.access("flannel"), FLANNEL_PREFIX, owner, config, **changes)

    return call


def lease(etcd):
    """A node's subnet, as flanneld writes it."""
    etcd.put(f"{FLANNEL_PREFIX}subnets/10.128.5.0-24", '{"PublicIP":"10.0.0.1","BackendType":"vxlan"}')


def test_configuration_is_written_once(bring, etcd):
    assert bring() == [f"write {KEY}"]
    assert json.loads(etcd.get(KEY).value) == CONFIG
    assert bring() == []


def test_dry_run_writes_nothing(bring, etcd):
    assert bring(dry=True)
    assert etcd.get(KEY) is None


def test_second_cluster_is_refused(bring, etcd):
    bring()
    with pytest.raises(RefusedError, match=r"\(isthmus 10\.0\.0\.1, this is blue 10\.9\.0\.1\)"):
        bring(owner="blue 10.9.0.1", config=network_flannel_config("10.160.0.0/12", 24, "vxlan"))
    assert json.loads(etcd.get(KEY).value) == CONFIG


def test_configuration_of_unknown_origin_is_refused(bring, etcd):
    etcd.put(KEY, '{"Network": "10.5.0.0/16"}')
    with pytest.raises(RefusedError, match="nobody knows whose"):
        bring()


@pytest.mark.parametrize(("pods", "prefix"), [("10.160.0.0/12", 24), ("10.128.0.0/12", 25)])
def test_range_stays_while_nodes_have_subnets(bring, etcd, pods, prefix):
    bring()
    lease(etcd)
    with pytest.raises(RefusedError, match=r"1 nodes have subnets of 10\.128\.0\.0/12"):
        bring(network_flannel_config(pods, prefix, "vxlan"))
    assert json.loads(etcd.get(KEY).value) == CONFIG


def test_backend_changes_under_subnets_and_range_without_any(bring, etcd):
    bring()
    assert bring(network_flannel_config("10.160.0.0/12", 24, "vxlan"))
    lease(etcd)
    assert bring(network_flannel_config("10.160.0.0/12", 24, "host-gw"))


def test_all_is_removed_where_no_job_may_have_flannel(bring, etcd):
    bring()
    lease(etcd)
    assert bring({}) == [f"remove {FLANNEL_PREFIX}"]
    assert etcd.range(FLANNEL_PREFIX).entries == {}
    assert bring({}) == []


def test_user_flannel_has_his_own_keys_alone(cluster):
    etcd = Etcd(cluster.access("flannel"))
    with pytest.raises(DeniedError):
        etcd.range(PREFIX)
    with pytest.raises(DeniedError):
        etcd.put(f"{PREFIX}ranges", "{}")
    etcd.close()
