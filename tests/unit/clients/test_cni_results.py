"""What an administrator's plugins answer is compared with the site's settings and the kernel."""

from ipaddress import IPv4Address, IPv4Network

import pytest

from isthmus.clients.cni.plugins import CniError, Result
from isthmus.clients.cni.results import Expected, Place, place
from isthmus.clients.netlink.links import Link
from isthmus.clients.netlink.observe import Seen
from isthmus.clients.netlink.tables import Route

RANGE = IPv4Network("10.180.0.0/16")
ADDRESS, GATEWAY, HOST = IPv4Address("10.180.1.2"), IPv4Address("10.180.1.1"), IPv4Address("192.0.2.1")
NAMES = ("eth0", "cni0", "veth7", "cali7", "dummy0", 'veth"; drop')


def seen(routes=(("cni0", "10.180.1.0/24"),), addresses=(("cni0", GATEWAY), ("eth0", HOST))):
    links = {name: Link(index, name, 1500, True, True, 0, "", "", "") for index, name in enumerate(NAMES, 1)}
    by_route, by_address = {1: [Route(IPv4Network("0.0.0.0/0"), IPv4Address("192.0.2.254"))]}, {}
    for name, to in routes:
        by_route.setdefault(links[name].index, []).append(Route(IPv4Network(to), None))
    for name, address in addresses:
        by_address.setdefault(links[name].index, []).append(address)
    return Seen(links, by_address, by_route)


def answer(address="10.180.1.2/24", gateway="10.180.1.1", **more):
    return Result({"ips": [{"address": address, **({"gateway": gateway} if gateway else {})}], **more})


def test_pod_behind_a_bridge_has_the_bridges_address_as_gateway():
    assert place(answer(), Expected(RANGE, "cni0"), seen()) == Place(ADDRESS, GATEWAY, "cni0", "cni0")


def test_pod_with_an_end_of_its_own_is_found_by_the_route_to_it():
    ptp = seen([("veth7", "10.180.1.2/32")], [("veth7", GATEWAY), ("dummy0", GATEWAY)])
    assert place(answer(), Expected(RANGE, "veth*"), ptp) == Place(ADDRESS, GATEWAY, "veth7", "veth7")


def test_gateway_of_the_site_serves_where_plugins_name_none():
    calico = seen([("cali7", "10.180.1.2/32")], [("dummy0", IPv4Address("169.254.100.1"))])
    expected = Expected(RANGE, "cali*", IPv4Address("169.254.100.1"))
    assert place(answer("10.180.1.2/32", None), expected, calico) == Place(ADDRESS, expected.gateway, "cali7", "dummy0")


def test_end_that_no_route_says_is_the_one_the_plugin_names():
    cilium = seen([("dummy0", "10.180.1.0/24")], [("dummy0", GATEWAY)])
    interfaces = [{"name": "eth0", "sandbox": "/run/netns/x"}, {"name": "cali7"}]
    found = place(answer(interfaces=interfaces), Expected(RANGE, "cali*"), cilium)
    assert (found.end, found.leg) == ("cali7", "dummy0")


IPS = [{"address": "10.180.1.2/24", "gateway": "10.180.1.1"}]


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        ({}, "gave 0 IPv4 addresses"),
        ({"ips": []}, "gave 0 IPv4 addresses"),
        ({"ips": 7}, "no list of up to 64"),
        ({"ips": {"address": "10.180.1.2/24"}}, "no list of up to 64"),
        ({"ips": IPS * 65}, "no list of up to 64"),
        ({"ips": IPS * 2}, "gave 2 IPv4 addresses; a pod has one"),
        ({"ips": [{"address": "fd00::2/64"}]}, "gave 0 IPv4 addresses"),
        ({"ips": [None]}, "makes no sense"),
        ({"ips": [{"address": None}]}, "makes no sense"),
        ({"ips": [{"address": "10.180.1.2/24\n accept"}]}, "makes no sense"),
        ({"ips": [{"address": "10.180.1.2/24", "gateway": "10.180.1.1; flush ruleset"}]}, "makes no sense"),
        (
            {"ips": [{"address": "192.0.2.7/24", "gateway": "10.180.1.1"}]},
            "no address of network_cni_range 10.180.0.0/16",
        ),
        ({"ips": [{"address": "10.180.0.0/16", "gateway": "10.180.1.1"}]}, "no address of network_cni_range"),
        ({"ips": [{"address": "10.180.255.255/16", "gateway": "10.180.1.1"}]}, "no address of network_cni_range"),
        ({"ips": [{"address": "10.180.1.1/24", "gateway": "10.180.1.1"}]}, "to the pod and to the node"),
        ({"ips": [{"address": "10.180.1.2/24"}]}, "no gateway; set network_cni_gateway"),
        (
            {"ips": [{"address": "10.180.1.2/24", "gateway": "10.180.1.77"}]},
            "10.180.1.77, the gateway of pods, is no address",
        ),
        ({"ips": [{"address": "10.180.9.2/24", "gateway": "10.180.1.1"}]}, "none does; set network_cni_interface"),
    ],
)
def test_answer_that_cannot_be_is_refused_with_the_remedy(raw, said):
    with pytest.raises(CniError, match=said.replace(".", r"\.")):
        place(Result(raw), Expected(RANGE, "cni0"), seen())


@pytest.mark.parametrize(
    ("pattern", "interfaces"),
    [
        ("veth*", [{"name": "cni0"}, {"name": "vethgone"}]),
        ("veth*", [{"name": 'veth"; drop'}]),
        ("veth*", [{"name": "veth7", "sandbox": "/run/netns/x"}]),
        ("veth*", [{"name": ["veth7"]}, "veth7", None]),
        ("veth*", "veth7"),
        ("veth*", None),
    ],
)
def test_end_that_is_not_there_or_not_meant_is_refused(pattern, interfaces):
    with pytest.raises(CniError, match=r"no interface veth\* leads to the pod's address 10\.180\.1\.2, cni0 does"):
        place(answer(interfaces=interfaces), Expected(RANGE, pattern), seen())
