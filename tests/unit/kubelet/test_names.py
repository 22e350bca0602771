"""A pod's names and resolver."""

from dataclasses import replace

import pytest

from isthmus.kubelet.translate.names import dns, fqdn, hostname, hosts
from isthmus.podproto.plan import Dns, Host
from tests.support.pods.objects import SETTINGS, pod

FULL = "web.db.shop.svc.cluster.local"
CLUSTER = Dns(("10.96.0.10",), ("shop.svc.cluster.local", "svc.cluster.local", "cluster.local"), ("ndots:5",))


@pytest.mark.parametrize(
    ("spec", "short", "full"),
    [
        ({}, "web", None),
        ({"hostname": "one"}, "one", None),
        ({"subdomain": "db"}, "web", FULL),
        ({"subdomain": "db", "hostname": "one"}, "one", "one.db.shop.svc.cluster.local"),
        ({"subdomain": "db", "setHostnameAsFQDN": True}, FULL, FULL),
        ({"setHostnameAsFQDN": True}, "web", None),
        ({"hostnameOverride": "a.b.c", "subdomain": "db"}, "a.b.c", None),
        ({"hostname": "a" * 62 + ".b"}, "a" * 62, None),
    ],
)
def test_pod_has_names(spec, short, full):
    assert (hostname(pod(**spec), SETTINGS), fqdn(pod(**spec), SETTINGS)) == (short, full)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, CLUSTER),
        ({"dnsPolicy": "ClusterFirst"}, CLUSTER),
        ({"hostNetwork": True}, Dns()),
        ({"hostNetwork": True, "dnsPolicy": "ClusterFirstWithHostNet"}, CLUSTER),
        ({"dnsPolicy": "Default"}, Dns()),
        (
            {"dnsPolicy": "None", "dnsConfig": {"nameservers": ["9.9.9.9"], "searches": ["x"]}},
            Dns(("9.9.9.9",), ("x",)),
        ),
        (
            {"dnsConfig": {"options": [{"name": "ndots", "value": "1"}, {"name": "edns0"}]}},
            CLUSTER._replace(options=("ndots:1", "edns0")),
        ),
        (
            {"dnsConfig": {"nameservers": ["10.96.0.10", "1.1.1.1", "2.2.2.2", "3.3.3.3"]}},
            CLUSTER._replace(nameservers=("10.96.0.10", "1.1.1.1", "2.2.2.2")),
        ),
        (
            {"dnsConfig": {"searches": ["cluster.local", "site"]}},
            CLUSTER._replace(searches=(*CLUSTER.searches, "site")),
        ),
    ],
)
def test_resolver_follows_policy_and_config(spec, expected):
    assert dns(pod(**spec), SETTINGS) == expected


def test_cluster_without_server_leaves_the_nodes_resolver():
    assert dns(pod(), replace(SETTINGS, dns="")) == Dns()


def test_aliases_are_lines():
    aliases = [{"ip": "10.0.0.1", "hostnames": ["a", "b"]}, {"ip": "10.0.0.2"}]
    assert hosts(pod(hostAliases=aliases)) == (Host("10.0.0.1", ("a", "b")), Host("10.0.0.2", ()))
