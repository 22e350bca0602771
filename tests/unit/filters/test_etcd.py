"""Members from the inventory, rights as data, and a live cluster that keeps its members."""

import pytest

from isthmus.filters import etcd
from isthmus.filters.errors import InputError

HOSTVARS = {"ctl": {"base_address": "10.0.0.1"}, "c1": {"base_address": "10.0.0.2"}}
URLS = {"c1": "https://10.0.0.2:2380", "ctl": "https://10.0.0.1:2380"}
SETTINGS = "name: ctl\ninitial-cluster: c1=https://10.0.0.2:2380,ctl=https://10.0.0.1:2380\n"


def problems(settings=SETTINGS, **looked):
    """What is notified of one member with these settings."""
    return etcd.etcd_member_problems({"ctl": {"settings": settings, "has_data": True} | looked}, URLS)


@pytest.mark.parametrize("members", [["ctl", "c1"], ["c1", "ctl"]])
def test_members_are_reported_the_same_in_any_order(members):
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
        {"settings": "", "has_data": False},
        {"settings": "initial-cluster: old=https://10.0.0.9:2380", "has_data": False},
    ],
    ids=["same", "other order", "new", "without data"],
)
def test_members_that_agree_may_start(member):
    assert problems(**member) == []


def test_member_that_did_not_answer_says_nothing():
    assert etcd.etcd_member_problems({"ctl": {"item": "ctl", "unreachable": True}}, URLS) == []


@pytest.mark.parametrize(
    ("settings", "before"),
    [
        ("initial-cluster: ctl=https://10.0.0.1:2380", "(ctl=https://10.0.0.1:2380)"),
        (SETTINGS.replace("10.0.0.2", "10.0.0.3"), "c1=https://10.0.0.3:2380"),
        ("", "(nobody knows which)"),
    ],
    ids=["fewer", "moved", "lost settings"],
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


def test_programs_and_secrets_have_their_places():
    programs = etcd.etcd_programs({"etcd": {"path": "/cache/etcd", "version": "3"}}, "/lib")
    assert programs == [{"src": "/cache/etcd", "dest": "/lib/etcd", "mode": "0755"}]
    secrets = etcd.etcd_secrets(["/state/root.password", "/state/flannel.password", "/state/token.key"], "/secrets")
    assert {each["dest"]: each["mode"] for each in secrets} == {
        "/secrets/root.password": "0640",
        "/secrets/flannel.password": "0600",
        "/secrets/token.key": "0640",
    }


@pytest.mark.parametrize(
    ("running", "wanted", "refused"),
    [
        ("3.7.3", "3.6.14", True),
        ("3.6.14", "3.7.3", True),
        ("3.6.13", "3.6.14", False),
        ("3.6.16", "3.6.14", False),
        ("", "3.6.14", False),
    ],
)
def test_another_release_comes_by_an_upgrade_alone(running, wanted, refused):
    states = {"c1": {}, "ctl": {"version": running}}
    found = etcd.etcd_version_problems(states, wanted)
    assert len(found) == refused
    assert all(f"ctl runs etcd {running}" in each and "playbooks/upgrade.yml" in each for each in found)
