"""The client on a real etcd with TLS, client certificates and users."""

import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from isthmus.clients.etcd.store import (
    CompactedError,
    Delete,
    DeniedError,
    Entry,
    Etcd,
    EtcdError,
    Put,
    UnavailableError,
)
from tests.support.servers.etcd import PASSWORDS, PREFIX, new_cluster, running
from tests.support.wait import wait

# It takes milliseconds; the rest is for a busy machine.
TIMEOUT_S = 60


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with running(tmp_path_factory.mktemp("etcd"), "--auth-token-ttl=1") as cluster:
        yield cluster


@pytest.fixture
def root(cluster):
    etcd = Etcd(cluster.access("root"))
    yield etcd
    etcd.close()


def key(name):
    return f"{PREFIX}{name}"


def reported(watch, count):
    """The first events of a watch that give at least so many; fewer, when no more came for long."""
    events, limit = [], threading.Timer(TIMEOUT_S, watch.close)
    limit.start()
    try:
        for changes in watch:
            events.extend(changes.events)
            if len(events) >= count:
                break
    finally:
        limit.cancel()
    return events


@pytest.mark.parametrize("value", ["", "{}", "ä\n\0", "x" * 1_000_000], ids=["empty", "json", "odd", "large"])
def test_value_comes_back_as_it_was(etcd, value):
    revision = etcd.put(key("a"), value)
    assert etcd.get(key("a")) == Entry(key("a"), value, revision)


def test_range_has_the_prefix_and_nothing_else(etcd, root):
    revision = [etcd.put(key(name), name) for name in ("a", "b/c")][-1]
    root.put(PREFIX.removesuffix("/") + "0", "neighbour")
    found = etcd.range(PREFIX)
    assert {entry.key: entry.value for entry in found.entries.values()} == {key("a"): "a", key("b/c"): "b/c"}
    assert found.revision > revision


def test_range_shows_an_older_revision(etcd):
    before = etcd.put(key("a"), "old")
    etcd.put(key("a"), "new")
    assert etcd.range(PREFIX, before).entries[key("a")].value == "old"


def test_range_bears_ten_mebibytes(etcd):
    for number in range(10):
        etcd.put(key(f"large/{number}"), "x" * 2**20)
    assert sum(len(entry.value) for entry in etcd.range(key("large/")).entries.values()) == 10 * 2**20


def test_deleted_key_is_gone(etcd):
    etcd.put(key("a"), "")
    assert [etcd.delete(key("a")), etcd.delete(key("a"))] == [True, False]
    assert etcd.get(key("a")) is None


def test_transaction_does_all_its_steps(etcd):
    before = etcd.put(key("a"), "old")
    outcome = etcd.transact({key("a"): before, key("b"): 0}, [Put(key("b"), "new"), Delete(key("a"))])
    assert outcome.succeeded
    assert etcd.range(PREFIX).entries == {key("b"): Entry(key("b"), "new", outcome.revision)}


@pytest.mark.parametrize("expected", [0, 1], ids=["absent", "older"])
def test_transaction_that_lost_its_race_does_nothing_and_reports(etcd, expected):
    revision = etcd.put(key("a"), "theirs")
    outcome = etcd.transact({key("a"): expected, key("b"): 0}, [Put(key("a"), "mine"), Put(key("b"), "mine")])
    assert (outcome.succeeded, outcome.found) == (False, {key("a"): Entry(key("a"), "theirs", revision)})
    assert list(etcd.range(PREFIX).entries) == [key("a")]


def test_of_many_transactions_one_wins(etcd):
    with ThreadPoolExecutor(20) as pool:
        mine = [pool.submit(etcd.transact, {key("a"): 0}, [Put(key("a"), str(number))]) for number in range(20)]
    assert [one.result().succeeded for one in mine].count(True) == 1


def test_transaction_of_too_many_steps_is_refused(etcd):
    with pytest.raises(EtcdError, match="too many operations"):
        etcd.transact({}, [Put(key(str(number)), "") for number in range(129)])


@pytest.mark.parametrize("changes", [{"password": "wrong"}, {"user": "nobody", "password": "x"}])
def test_wrong_password_is_denied_at_once(cluster, changes):
    etcd = Etcd(cluster.access(**changes))
    with pytest.raises(DeniedError, match="authentication failed"):
        etcd.get(key("a"))


@pytest.mark.parametrize("foreign", ["/isthmus/test/", "/isthmus/other/network/a", PREFIX.removesuffix("/")])
def test_foreign_keys_are_denied(etcd, foreign):
    for forbidden in (
        lambda: etcd.put(foreign, ""),
        lambda: etcd.get(foreign),
        lambda: reported(etcd.watch(foreign, 0), 1),
    ):
        with pytest.raises(DeniedError, match="permission denied"):
            forbidden()


def test_password_is_in_no_text(cluster):
    assert PASSWORDS["networkd"] not in repr(cluster.access())


def test_new_user_changes_nothing_for_those_logged_in(etcd, root):
    """A change of users or roles makes every token old."""
    etcd.put(key("a"), "before")
    root.call("auth/user/add", {"name": "late", "password": "late"})
    root.call("auth/user/delete", {"name": "late"})
    assert etcd.get(key("a")).value == "before"
    etcd.put(key("a"), "after")


def test_server_without_the_clusters_certificate_is_refused(cluster, tmp_path):
    other = new_cluster(tmp_path)
    etcd = Etcd(cluster.access(ca=other.access().ca, timeout_s=3))
    with pytest.raises(UnavailableError, match="certificate verify failed"):
        etcd.get(key("a"))


def test_client_without_a_certificate_of_the_cluster_is_refused(cluster, tmp_path):
    other = new_cluster(tmp_path).access()
    etcd = Etcd(cluster.access(certificate=other.certificate, key=other.key, timeout_s=3))
    with pytest.raises(UnavailableError):
        etcd.get(key("a"))


def test_client_certificate_with_a_name_is_refused(cluster):
    """What etcd does so that nobody mistakes the name for a login; the role's certificates have none."""
    tls = cluster.access().ca.parent
    etcd = Etcd(cluster.access(certificate=tls / "etcd.crt", key=tls / "etcd.key"))
    with pytest.raises(EtcdError, match="CommonName"):
        etcd.get(key("a"))


def test_watch_reports_each_change_once_and_in_order(etcd):
    first = etcd.put(key("a"), "1")
    etcd.transact({}, [Put(key("b"), "2"), Delete(key("a"))])
    watch = etcd.watch(PREFIX, first)
    events = reported(watch, 2)
    assert {(event.key, event.value) for event in events} == {(key("b"), "2"), (key("a"), None)}
    assert {event.revision for event in events} == {first + 1} == {watch.revision}


def test_watch_of_many_changes_leaves_none_out(etcd):
    first = etcd.put(key("begin"), "")
    for number in range(2_500):
        etcd.put(key("a"), str(number))
    events = reported(etcd.watch(PREFIX, first), 2_500)
    assert [event.value for event in events] == [str(number) for number in range(2_500)]


def test_closed_watch_ends_while_it_waits(etcd):
    watch = etcd.watch(PREFIX, etcd.put(key("a"), ""))
    listener = threading.Thread(target=list, args=[watch])
    listener.start()
    wait(lambda: watch.connected, timeout_s=TIMEOUT_S, interval_s=0.01)
    watch.close()
    listener.join(TIMEOUT_S)
    assert not listener.is_alive()


def test_watch_hears_of_etcd_while_nothing_changes(cluster):
    """Etcd says nothing at all to a watch that begins at a revision which is still to come."""
    etcd, words = Etcd(cluster.access(silence_s=3)), []
    watch = etcd.watch(PREFIX, etcd.put(key("a"), "1"), words.append)
    limit = threading.Timer(5, watch.close)
    limit.start()
    heard = list(watch)
    assert (words, watch.connected) == ([], False)
    assert heard
    assert not [event for changes in heard for event in changes.events]
    etcd.close()


def test_compacted_revision_is_reported(etcd, root):
    first = etcd.put(key("a"), "1")
    last = [etcd.put(key("a"), str(number)) for number in range(3)][-1]
    root.call("kv/compaction", {"revision": str(last), "physical": True})
    for lost in (lambda: etcd.range(PREFIX, first), lambda: reported(etcd.watch(PREFIX, first), 1)):
        with pytest.raises(CompactedError):
            lost()


def test_watch_notices_that_etcd_was_set_back(etcd):
    with pytest.raises(CompactedError, match="set back"):
        reported(etcd.watch(PREFIX, 10**6), 1)


def test_environment_leads_no_request_astray(cluster, monkeypatch, tmp_path):
    """A proxy is set and a netrc file has a login: neither is for etcd."""
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login a password b\n")
    (tmp_path / ".netrc").chmod(0o600)
    for name, value in {"HTTPS_PROXY": "http://127.0.0.1:9", "NO_PROXY": "", "HOME": str(tmp_path)}.items():
        monkeypatch.setenv(name, value)
    assert Etcd(cluster.access()).put(key("a"), "") > 0


def test_log_of_etcd_has_no_password(cluster):
    found = subprocess.run(["grep", "-c", PASSWORDS["networkd"], cluster.folder / "m0.log"], capture_output=True)
    assert found.stdout.strip() == b"0"
