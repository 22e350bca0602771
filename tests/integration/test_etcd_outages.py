"""What a client goes through: members that stop, die, hang, or lose their leader; tokens that end."""

import socket
import threading
import time
from contextlib import ExitStack

import pytest
import requests

from isthmus.clients.etcd.store import Etcd, UnavailableError
from isthmus.clients.etcd.wire import prefix_range
from tests.support.servers.etcd import PREFIX, new_cluster
from tests.support.servers.etcd import running as started
from tests.support.wait import wait

# Things take milliseconds, elections a second; the rest is for a busy machine.
TIMEOUT_S = 60
KEY = f"{PREFIX}a"


@pytest.fixture
def running(tmp_path):
    """Start clusters; they are stopped in the end."""
    with ExitStack() as stack:
        yield lambda *flags, size=1: stack.enter_context(started(tmp_path, *flags, size=size))


@pytest.fixture
def silent():
    """An endpoint that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"https://127.0.0.1:{server.getsockname()[1]}"


class Listener(threading.Thread):
    """Keeps what a watch reported, and why it ended."""

    def __init__(self, watch):
        super().__init__(daemon=True)
        self.watch, self.events = watch, []
        self.start()

    def run(self):
        for changes in self.watch:
            self.events.extend(changes.events)

    def until(self, value):
        """Wait for a value; return all so far."""
        return wait(lambda: [event.value for event in self.events], lambda got: value in got)

    def values(self, *wanted):
        """Wait for these values in this order."""
        return wait(lambda: [event.value for event in self.events], lambda got: got == list(wanted))


def test_endpoint_that_is_down_is_passed_over(running):
    cluster = running()
    down = "https://127.0.0.1:1"
    etcd = Etcd(cluster.access(endpoints=(down, cluster.members[0].endpoint), timeout_s=TIMEOUT_S))
    assert etcd.put(KEY, "x")
    begin = time.monotonic()
    etcd.put(KEY, "y")
    # Far from the share of the time that one may take which only hangs.
    assert time.monotonic() - begin < TIMEOUT_S / 4


def test_endpoint_that_hangs_leaves_time_for_another(running, silent):
    cluster = running()
    etcd = Etcd(cluster.access(endpoints=(silent, cluster.members[0].endpoint), timeout_s=8))
    assert etcd.put(KEY, "x")


@pytest.mark.parametrize("hanging", [True, False], ids=["hang", "refuse"])
def test_no_endpoint_is_reported_in_time(tmp_path, silent, hanging):
    access = new_cluster(tmp_path).access(timeout_s=0.6, **({"endpoints": (silent, silent)} if hanging else {}))
    begin = time.monotonic()
    with pytest.raises(UnavailableError, match="no answer in time" if hanging else "refused"):
        Etcd(access).get(KEY)
    assert 0.15 < time.monotonic() - begin < 4


@pytest.mark.parametrize("kill", [False, True], ids=["stop", "kill"])
def test_watch_goes_on_after_a_restart(running, kill):
    cluster = running()
    etcd, said = Etcd(cluster.access()), []
    watch = etcd.watch(PREFIX, etcd.put(KEY, "0"), said.append)
    listener = Listener(watch)
    etcd.put(KEY, "1")
    listener.values("1")
    cluster.members[0].stop(kill=kill)
    wait(lambda: not watch.connected and said, timeout_s=TIMEOUT_S)
    cluster.start()
    etcd.put(KEY, "2")
    listener.values("1", "2")
    watch.close()
    listener.join(TIMEOUT_S)
    assert not listener.is_alive()
    assert "broke off at revision" in said[0]


def test_client_logs_in_again_when_its_token_has_ended(running):
    cluster = running()
    cluster.stop()
    tls = cluster.folder / "tls"
    # Reported in whole seconds, so of one second little may be left.
    cluster.start(f"--auth-token=jwt,pub-key={tls}/token.pub,priv-key={tls}/token.key,sign-method=ES256,ttl=2s")
    etcd = Etcd(cluster.access())
    watch = etcd.watch(PREFIX, etcd.put(KEY, "0"))
    # A token that is younger than the client's.
    younger = etcd.call("auth/authenticate", {"name": "networkd", "password": "networkds"})["token"]
    wait(lambda: accepted(cluster, younger), ready=lambda yes: not yes, timeout_s=TIMEOUT_S)
    listener = Listener(watch)
    wait(lambda: watch.connected, timeout_s=TIMEOUT_S)
    etcd.put(KEY, "1")
    listener.values("1")
    watch.close()


def accepted(cluster, token):
    """Whether etcd takes a token."""
    access = cluster.access()
    answer = requests.post(
        f"{access.endpoints[0]}/v3/kv/range",
        json=prefix_range(PREFIX),
        headers={"Authorization": token},
        verify=str(access.ca),
        cert=(str(access.certificate), str(access.key)),
        timeout=TIMEOUT_S,
    )
    return "invalid auth token" not in answer.text


def test_of_three_members_one_may_die(running):
    cluster = running(size=3)
    etcd = Etcd(cluster.access(timeout_s=TIMEOUT_S))
    watch = etcd.watch(PREFIX, etcd.put(KEY, "0"))
    listener = Listener(watch)
    wait(lambda: watch.connected, timeout_s=TIMEOUT_S)
    cluster.members[0].stop(kill=True)
    etcd.put(KEY, "1")
    # Once, or twice where the leader died with the first try.
    got = listener.until("1")
    assert set(got) == {"1"}
    watch.close()


def test_member_that_is_alone_neither_writes_nor_seems_well(running):
    """It has no leader: its answers may be old."""
    cluster = running(size=3)
    endpoints = (cluster.members[2].endpoint,)
    etcd, hasty = (Etcd(cluster.access(endpoints=endpoints, timeout_s=limit_s)) for limit_s in (TIMEOUT_S, 2))
    watch = etcd.watch(PREFIX, etcd.put(KEY, "0"))
    listener = Listener(watch)
    wait(lambda: watch.connected, timeout_s=TIMEOUT_S)
    for member in cluster.members[:2]:
        member.stop(kill=True)
    with pytest.raises(UnavailableError):
        hasty.put(KEY, "lost")
    wait(lambda: not watch.connected, timeout_s=TIMEOUT_S)
    cluster.members[0].start(cluster.known)
    cluster.wait_for_leader()
    etcd.put(KEY, "1")
    got = listener.until("1")
    # The put that failed may have been carried out: nobody was there to say so.
    assert set(got) - {"lost"} == {"1"}
    watch.close()
