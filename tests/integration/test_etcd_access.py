"""Users, roles and rights on a real etcd: made from nothing, changed where they differ, else left alone."""

import pytest

from isthmus.clients.etcd.access import Account, Permission, Right, apply
from isthmus.clients.etcd.store import DeniedError, Etcd
from tests.support.servers.etcd import PASSWORDS, PREFIX, running

ROOT = Account("root", PASSWORDS["root"])
NETWORKD = Account("networkd", PASSWORDS["networkd"], frozenset({Permission.below(PREFIX, Right.READWRITE)}))
READER = Account("reader", "readers", frozenset({Permission.below(PREFIX, Right.READ)}))


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with running(tmp_path_factory.mktemp("etcd"), users=False) as cluster:
        yield cluster


@pytest.fixture
def bring(cluster):
    """Bring accounts about; root is always among them. Begins with root and networkd."""
    access = cluster.access("root")

    def call(*accounts, dry=False):
        return apply(access, [ROOT, *accounts], dry=dry)

    call(NETWORKD)
    return call


@pytest.fixture
def etcd(cluster):
    def login(account):
        return Etcd(cluster.access(account.name, password=account.password))

    return login


def test_first_run_lets_in_who_is_on_the_list_alone(cluster, bring, etcd):
    etcd(NETWORKD).put(PREFIX, "")
    with pytest.raises(DeniedError):
        etcd(NETWORKD).put("/isthmus/test/flannel/", "")
    with pytest.raises(DeniedError):
        etcd(Account("stranger", "x")).get(PREFIX)
    assert bring(NETWORKD) == []


def test_dry_run_reports_and_changes_nothing(bring, etcd):
    steps = ["add role reader", "grant read to role reader", "add user reader", "give user reader their role"]
    assert bring(NETWORKD, READER, dry=True) == steps
    with pytest.raises(DeniedError):
        etcd(READER).get(PREFIX)
    assert bring(NETWORKD, READER) == steps


def test_reader_may_read_and_no_more(bring, etcd):
    bring(NETWORKD, READER)
    etcd(NETWORKD).put(PREFIX, "seen")
    assert etcd(READER).get(PREFIX).value == "seen"
    with pytest.raises(DeniedError):
        etcd(READER).put(PREFIX, "")


def test_user_not_on_the_list_goes(bring, etcd):
    bring(NETWORKD, READER)
    assert bring(NETWORKD) == ["remove user reader", "remove role reader"]
    with pytest.raises(DeniedError):
        etcd(READER).get(PREFIX)


def test_new_password_is_set_and_the_old_one_ends(bring, etcd):
    changed = Account("networkd", "changed", NETWORKD.permissions)
    assert bring(changed) == ["set the password of user networkd"]
    etcd(changed).put(PREFIX, "")
    with pytest.raises(DeniedError):
        etcd(NETWORKD).put(PREFIX, "")


@pytest.mark.parametrize(
    ("permissions", "steps"),
    [
        ({Permission.below(PREFIX, Right.READ)}, ["grant read to role networkd"]),
        (set(), ["revoke a right of role networkd"]),
        (
            {Permission.below("/b/", Right.READWRITE)},
            ["revoke a right of role networkd", "grant readwrite to role networkd"],
        ),
    ],
    ids=["less", "none", "other"],
)
def test_right_follows_the_list(bring, permissions, steps):
    changed = Account("networkd", NETWORKD.password, frozenset(permissions))
    assert bring(changed) == steps
    assert bring(changed) == []


def test_role_given_by_hand_is_taken(cluster, bring, etcd):
    etcd(ROOT).call("auth/user/grant", {"user": "networkd", "role": "root"})
    assert bring(NETWORKD) == ["take role root from user networkd"]


def test_run_that_was_cut_off_is_finished(tmp_path):
    with running(tmp_path, users=False) as cluster:
        begun = Etcd(cluster.access(user=""))
        begun.call("auth/user/add", {"name": "networkd", "password": "of an earlier try"})
        steps = apply(cluster.access("root"), [ROOT, NETWORKD])
        assert "set the password of user networkd" in steps
        assert steps[-1] == "turn authentication on"
        assert Etcd(cluster.access()).put(PREFIX, "")


def test_other_root_password_is_refused_and_changes_nothing(cluster, bring):
    with pytest.raises(DeniedError):
        apply(cluster.access("root", password=READER.password), [ROOT, NETWORKD, READER])
    assert bring(NETWORKD) == []
