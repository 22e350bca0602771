"""A site's own CNI plugins that cannot work are refused before any change, and layers that need more refuse them."""

import json
import stat

import pytest

from isthmus.filters.drivers.cni.problems import network_cni_problems, problems
from isthmus.filters.drivers.filters import network_pod_ranges
from isthmus.filters.network.encryption import encryption_problems
from isthmus.filters.validate.layers.gateways import gateway_problems
from isthmus.filters.validate.layers.kubernetes import kubernetes_problems
from isthmus.filters.validate.site import Site
from isthmus.filters.validate.sources import Sources

GIVEN = {"network_cni_list": "10-site.conflist", "network_cni_range": "10.180.0.0/16"}
DEFAULTS = {
    "network_pod_range": "10.64.0.0/11",
    "network_drivers": ["private", "cni"],
    "network_cni_folder": "/etc/cni/net.d",
    "network_cni_plugins": "/usr/lib/cni",
    "network_cni_interface": "cni0",
    "network_cni_gateway": "",
}


def site(**variables):
    hostvars = {"ctl": {"base_address": "192.0.2.1", **DEFAULTS, **variables}}
    return Site(hostvars, {"all": ["ctl"], "controller": ["ctl"], "gateways": ["ctl"]}, {}, Sources([]))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, ""),
        ({"network_cni_interface": "veth*", "network_cni_gateway": "169.254.100.1"}, ""),
        ({"network_cni_interface": "cali*"}, ""),
        ({"network_cni_range": ""}, "'' is no range for pods; write all that the plugins of all nodes give"),
        ({"network_cni_range": "10.180.0.1/16"}, "is no range for pods"),
        ({"network_cni_range": "10.180.0.0/30"}, "is no range for pods"),
        ({"network_cni_range": "10.80.0.0/16"}, "overlaps network_pod_range (10.64.0.0/11)"),
        ({"network_cni_range": "192.0.2.0/24"}, "overlaps ctl (192.0.2.1)"),
        ({"network_cni_list": ""}, "'' is no name of a list; "),
        ({"network_cni_list": "../../etc/shadow"}, "name a file of network_cni_folder"),
        ({"network_cni_list": "a.conf"}, "name a file of network_cni_folder"),
        ({"network_cni_folder": "cni"}, "network_cni_folder cni is no whole path"),
        ({"network_cni_plugins": "/usr/lib/../x"}, "network_cni_plugins /usr/lib/../x is no whole path"),
        ({"network_cni_interface": "*"}, "'*' is no interface; write it as cni0"),
        ({"network_cni_interface": 'cni0"'}, "is no interface"),
        ({"network_cni_interface": "il*"}, "network_cni_interface il* is taken"),
        ({"network_cni_interface": "i*"}, "is taken"),
        ({"network_cni_interface": "iflannel"}, "is taken"),
        ({"network_cni_gateway": "10.0.0.0/8"}, "network_cni_gateway 10.0.0.0/8 is no IPv4 address"),
    ],
)
def test_variables_that_cannot_work_are_reported(changes, said):
    found = list(problems(site(**{**GIVEN, **changes})))
    assert len(found) == bool(said)
    assert all(said.rstrip("; ") in problem or "of CNI plugins" in problem for problem in found)


def test_range_that_nobody_gave_is_no_range_of_pods():
    assert network_pod_ranges({"network_pod_range": "10.64.0.0/11"} | dict.fromkeys(RANGES, ""), {}) == ["10.64.0.0/11"]


RANGES = ("network_flannel_range", "network_routed_range", "network_cni_range")
LIST = {"cniVersion": "1.0.0", "name": "site", "plugins": [{"type": "ptp", "ipam": {"type": "host-local"}}]}
DIRECTORY, PROGRAM, FILE = stat.S_IFDIR | 0o755, stat.S_IFREG | 0o755, stat.S_IFREG | 0o644


def found(**changes):
    """Return what the module says of a right host."""
    return {
        "list": "/etc/cni/net.d/a.conflist",
        "plugins": "/usr/lib/cni",
        "last": ["/etc/cni/net.d", "/usr/lib/cni"],
        "way": {"/": [0, DIRECTORY], "/etc/cni/net.d": [0, DIRECTORY], "/etc/cni/net.d/a.conflist": [0, FILE]},
        "programs": {f"/usr/lib/cni/{name}": [0, PROGRAM] for name in ("ptp", "host-local", "loopback")},
        "text": json.dumps(LIST),
        **changes,
    }


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, []),
        ({"programs": {}}, []),
        ({"programs": {"/usr/lib/cni/other": [0, PROGRAM]}}, []),
        ({"text": None}, ["/etc/cni/net.d/a.conflist is not there; write the list"]),
        ({"text": "{"}, ["/etc/cni/net.d/a.conflist: it is no JSON"]),
        ({"programs": {"/usr/lib/cni/loopback": [0, PROGRAM]}}, ["host-local is not there", "ptp is not there"]),
        ({"way": {"/etc": [1001, DIRECTORY]}}, ["/etc belongs to uid 1001; run chown root /etc"]),
        (
            {"way": {"/etc/cni/net.d": [0, stat.S_IFDIR | 0o1777]}},
            ["/etc/cni/net.d may be written by others than root"],
        ),
        ({"way": {"/usr/lib": [0, stat.S_IFLNK | 0o777]}}, ["/usr/lib is a link"]),
        ({"programs": found()["programs"] | {"/usr/lib/cni/x": [0, stat.S_IFREG | 0o777]}}, ["/usr/lib/cni/x may be"]),
    ],
)
def test_host_whose_list_cannot_be_used_is_refused(changes, said):
    reported = network_cni_problems(found(**changes), ["containernetworking-plugins"])
    assert len(reported) == len(said)
    assert all(words in problem for words, problem in zip(said, reported, strict=True))


def test_programs_that_no_package_brings_must_be_there():
    reported = network_cni_problems(found(programs={}), [])
    assert [problem.split(" ")[0] for problem in reported] == [
        f"/usr/lib/cni/{name}" for name in ("host-local", "loopback", "ptp")
    ]


def test_users_clusters_refuse_a_network_that_promises_too_little():
    (problem,) = kubernetes_problems(site(kubernetes_driver="cni"))
    assert "kubernetes_driver cni does not promise what users' clusters need: pods of different nodes reach" in problem
    assert "use private, or another of private, flannel, routed, none" in problem
    for driver in ("private", "flannel", "routed", "none"):
        assert not list(kubernetes_problems(site(kubernetes_driver=driver)))


def test_encryption_and_gateways_refuse_it():
    (encrypted,) = encryption_problems(site(network_encryption="wireguard"))
    assert "pods of cni would send in the clear; take cni out of network_drivers" in encrypted
    assert [problem for problem in gateway_problems(site()) if "pods of network cni would go round them" in problem]
