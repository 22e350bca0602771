"""What roles other than network have of the drivers: users of etcd, lists for Apptainer, ranges for a cloud."""

from isthmus.filters.drivers.filters import network_cni_lists, network_etcd_users, network_pod_ranges
from isthmus.filters.drivers.flannel.files import network_flannel_list
from tests.repo import tree

NETWORKD = {"name": "networkd", "grants": [{"prefix": "network/", "access": "readwrite"}]}
DEFAULTS = tree.load(tree.ROOT / "roles/network/defaults/main.yml")


def test_drivers_have_users_of_etcd_though_nobody_lists_them():
    flannel = {"name": "flannel", "grants": [{"prefix": "flannel/", "access": "readwrite"}]}
    assert network_etcd_users([NETWORKD]) == [NETWORKD, flannel]


def test_user_that_the_inventory_has_is_the_inventorys():
    own = {"name": "flannel", "grants": [{"prefix": "flannel/", "access": "read"}]}
    assert network_etcd_users([own, NETWORKD]) == [own, NETWORKD]


def test_lists_are_those_of_the_chosen_drivers():
    assert network_cni_lists(["private"]) == {}
    assert network_cni_lists(["private", "flannel"]) == {"flannel": network_flannel_list()}


def test_ranges_of_pods_are_every_drivers():
    assert network_pod_ranges(DEFAULTS, {}) == ["10.64.0.0/11", "10.128.0.0/12", "10.160.0.0/12"]
    chosen = {"network_flannel_range": "10.200.0.0/16", "network_drivers": ["private"]}
    assert network_pod_ranges(DEFAULTS, chosen) == ["10.64.0.0/11", "10.200.0.0/16", "10.160.0.0/12"]
