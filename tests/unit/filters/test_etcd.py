"""Members from the inventory, rights as data, and a live cluster that keeps its members."""

from base64 import b64encode

import pytest

from isthmus.filters import etcd
from isthmus.filters.errors import InputError

HOSTVARS = {"ctl": {"base_address": "10.0.0.1"}, "c1": {"base_address": "10.0.0.2"}}
URLS = {"c1": "https://10.0.0.2:2380", "ctl": "https://10.0.0.1:2380"}
SETTINGS = "name: ctl\ninitial-cluster: c1=https://10.0.0.2:2380,ctl=https://10.0.0.1:2380\n"


def problems(settings=SETTINGS, **looked):
    """What is told of one member with these settings."""
    read = {"item": "ctl"} | ({} if settings is None else {"content": b64encode(settings.encode()).decode()})
    return etcd.etcd_member_problems([read], [looked or {"stat": {"exists": True}}], URLS)


@pytest.mark.parametrize("members", [["ctl", "c1"], ["c1", "ctl"]])
def test_members_are_told_the_same_in_any_order(members):
    urls = etcd.etcd_urls(members, HOSTVARS, 2380)
    assert urls == URLS
    assert etcd.etcd_initial_cluster(urls) == "c1=https://10.0.0.2:2380,ctl=https://10.0.0.1:2380"


def test_accounts_have_keys_of_this_cluster_alone():
    users = [{"name": "networkd", "grants": [{"prefix": "network/", "access": "readwrite"}]}]
    accounts = etcd.etcd_accounts(users, "/isthmus/id/", {"root": "r", "networkd": "n", "gone": "g"})
    assert accounts == [
        {"name": "root", "password": "r", "grants": []},
        {
            "name": "networkd",
            "password": "n",
            "grants": [{"prefix": "/isthmus/id/network/", "access": "readwrite"}],
        },
    ]


@pytest.mark.parametrize(
    "member",
    [
        {},
        {"settings": "initial-cluster: ctl=https://10.0.0.1:2380,c1=https://10.0.0.2:2380"},
        {"settings": None, "stat": {"exists": False}},
        {"settings": "initial-cluster: old=https://10.0.0.9:2380", "stat": {"exists": False}},
        {"settings": None, "unreachable": True},
    ],
    ids=["same", "other order", "new", "without data", "unreachable"],
)
def test_members_that_agree_may_start(member):
    assert problems(**member) == []


@pytest.mark.parametrize(
    ("settings", "before"),
    [
        ("initial-cluster: ctl=https://10.0.0.1:2380", "(ctl=https://10.0.0.1:2380)"),
        (SETTINGS.replace("10.0.0.2", "10.0.0.3"), "c1=https://10.0.0.3:2380"),
        ("", "(nobody knows which)"),
        (None, "(nobody knows which)"),
    ],
    ids=["fewer", "moved", "empty settings", "lost settings"],
)
def test_members_of_another_cluster_are_refused_with_the_remedy(settings, before):
    (problem,) = problems(settings)
    assert before in problem
    assert "playbooks/backup.yml" in problem
    assert "playbooks/restore.yml" in problem


@pytest.mark.parametrize("settings", ["[", "text", "initial-cluster: [a]"])
def test_settings_that_are_none_are_refused(settings):
    with pytest.raises(InputError, match=r"etcd\.yml of a live member cannot be read"):
        problems(settings)
