"""What is wrong with etcd's members, users and settings is reported before any change."""

import pytest

from isthmus.filters.validate.layers.etcd import etcd_problems
from isthmus.filters.validate.shapes import shape_problems
from isthmus.filters.validate.site import Site
from isthmus.filters.validate.sources import Sources

GRANT = {"prefix": "network/", "access": "readwrite"}
NETWORKD = {"name": "networkd", "grants": [GRANT]}


def site(members=("ctl",), base=("ctl", "c1", "c2"), **variables):
    groups = {"all": ["ctl", "c1", "c2"], "controller": ["ctl"], "base": list(base), "etcd": list(members)}
    return Site({"ctl": variables, "c1": {}, "c2": {}}, groups, {}, Sources([]))


def user(**changes):
    return {"etcd_users": [{**NETWORKD, **changes}]}


def granted(**changes):
    return user(grants=[{**GRANT, **changes}])


@pytest.mark.parametrize(
    "variables",
    [
        {},
        {"members": ("ctl", "c1", "c2")},
        {"members": ()},
        {"etcd_users": [NETWORKD, {"name": "dns", "grants": [{"prefix": "a.b/c_d/", "access": "read"}]}]},
        {"etcd_client_port": 1, "etcd_peer_port": 65535, "etcd_quota_mib": 64, "etcd_snapshot_keep": 1},
    ],
)
def test_right_etcd_has_no_problem(variables):
    assert list(etcd_problems(site(**variables))) == []


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"members": ("ctl", "c1")}, "group etcd has 2 hosts: ctl, c1; use 1 or 3"),
        ({"base": ("c1", "c2")}, "host ctl of group etcd is not in group base; put it into controller"),
        ({"etcd_client_port": 0}, "etcd_client_port is 0, no port; write a number from 1 to 65535"),
        ({"etcd_peer_port": "2380"}, "etcd_peer_port is '2380', no port"),
        ({"etcd_client_port": 7, "etcd_metrics_port": 7}, "etcd_metrics_port and etcd_client_port are both 7"),
        ({"etcd_quota_mib": 63}, "etcd_quota_mib is 63; write a number from 64 to 8192"),
        ({"etcd_snapshot_keep": 0}, "etcd_snapshot_keep is 0; write a number from 1"),
        (user(name="root"), "etcd_users has the name 'root'; use a-z"),
        (user(name="A b"), "etcd_users has the name 'A b'"),
        ({"etcd_users": [NETWORKD, NETWORKD]}, "etcd_users has two of the name 'networkd'"),
        (user(grants=[]), "user networkd in etcd_users lacks grants"),
        (user(role="x"), "unknown key of user networkd in etcd_users: 'role'"),
        (
            granted(access="readwrit"),
            "unknown access in etcd_users, user networkd: 'readwrit'; did you mean 'readwrite'?",
        ),
        (granted(prefix="network"), "prefix 'network' in etcd_users, user networkd is none; write words"),
        (granted(prefix="/network/"), "prefix '/network/'"),
        (granted(prefix="../"), "prefix '../'"),
        (granted(key="a"), "unknown key of a grant in etcd_users, user networkd: 'key'"),
    ],
)
def test_wrong_etcd_is_reported(variables, message):
    (problem,) = etcd_problems(site(**variables))
    assert message in problem


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"etcd_users": {"networkd": []}}, "etcd_users is a dict; write a list"),
        ({"etcd_users": [{"grants": []}]}, "etcd_users[0].name is missing; write text"),
        (user(grants="network/"), "etcd_users[0].grants is text; write a list"),
        ({"etcd_conf_extra": []}, "etcd_conf_extra is a list; write a dict"),
    ],
)
def test_misshaped_etcd_is_reported(variables, message):
    (problem,) = shape_problems(site(**variables))
    assert message in problem
