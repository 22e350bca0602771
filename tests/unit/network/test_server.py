"""The daemon's sockets, with real connections."""

import errno
import os
import socket
import threading
import time
from contextlib import contextmanager

import pytest

from isthmus.network.api import limits, server
from tests.support.wait import wait

BOB, CAROL = 1002, 1003


def answer(line, uid):
    return b"%d %s" % (uid, line.rstrip() + b"\n")


def admit(beginning, uid):
    return None if beginning.startswith(b"long") else b"too long\n"


BREATH_S = 0.001


def known(uid):
    if uid not in (BOB, CAROL):
        raise KeyError(uid)


@contextmanager
def run(serves):
    thread = threading.Thread(target=serves.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield serves
    finally:
        serves.shutdown()
        serves.server_close()
        thread.join()


@pytest.fixture
def serving(tmp_path):
    """Root's socket, here of the user who runs the tests."""
    with run(server.Server(tmp_path / "run" / "root", answer, BREATH_S)) as serves:
        yield serves


@pytest.fixture
def peers(monkeypatch):
    """Choose who connects from now on."""
    seen = {}
    now = [BOB]

    def peer(connection):
        return seen.setdefault(connection.fileno(), now[0])

    def choose(uid):
        seen.clear()
        now[0] = uid

    monkeypatch.setattr(server, "peer", peer)
    return choose


@pytest.fixture
def users(tmp_path, peers):
    with run(server.UsersServer(tmp_path / "users", answer, admit, limits.Accounts(known), BREATH_S)) as serves:
        yield serves


def connect(serving):
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(30)
    connection.connect(serving.server_address)
    return connection


def ask(connection, text):
    connection.sendall(text)
    return connection.makefile("rb").readline()


def test_reply_knows_the_peers_uid(serving):
    with connect(serving) as connection:
        assert ask(connection, b"hello\n") == b"%d hello\n" % os.getuid()


def test_connection_takes_several_requests(serving):
    with connect(serving) as connection:
        assert [ask(connection, b"%d\n" % number)[-2:-1] for number in range(3)] == [b"0", b"1", b"2"]


@pytest.mark.parametrize("kind", ["serving", "users"])
def test_line_too_long_ends_the_connection(request, kind):
    with connect(request.getfixturevalue(kind)) as connection:
        connection.sendall(b"long" + b"x" * (server.LINE_MAX + 1 - len("long")))
        lines = connection.makefile("rb")
        assert len(lines.readline()) > server.LINE_MAX
        assert lines.readline() == b""


def test_peer_that_leaves_harms_nobody(serving):
    with connect(serving) as connection:
        connection.sendall(b"half")
    with connect(serving) as connection:
        assert ask(connection, b"next\n").endswith(b"next\n")


def test_socket_left_by_a_killed_daemon_is_replaced(tmp_path):
    left = tmp_path / "left"
    left.write_text("")
    server.Server(left, answer).server_close()


def test_only_root_may_connect_to_roots_socket(serving, users):
    assert os.stat(serving.server_address).st_mode & 0o777 == 0o600
    assert os.stat(users.server_address).st_mode & 0o777 == 0o666


def test_roots_socket_answers_nobody_else(serving, peers):
    with connect(serving) as connection:
        assert connection.recv(1) == b""


def test_user_with_too_many_connections_is_refused_and_another_is_not(users, peers):
    held = [connect(users) for _ in range(server.CONNECTIONS_MAX)]
    assert all(ask(each, b"one\n") for each in held)
    with connect(users) as refused:
        assert refused.recv(1) == b""
    peers(CAROL)
    with connect(users) as other:
        assert ask(other, b"hers\n") == b"%d hers\n" % CAROL
    for each in held:
        each.close()
    peers(BOB)
    wait(lambda: users._open[BOB] == 0, interval_s=0.01)
    with connect(users) as again:
        assert ask(again, b"two\n")


def test_all_accounts_leave_threads_for_root(users, monkeypatch, peers):
    monkeypatch.setattr(server, "ACCOUNTS_CONNECTIONS_MAX", 2)
    held = [connect(users) for _ in range(2)]
    assert all(ask(each, b"one\n") for each in held)
    peers(CAROL)
    with connect(users) as refused:
        assert refused.recv(1) == b""
    peers(0)
    with connect(users) as root:
        assert ask(root, b"root\n")
    for each in held:
        each.close()


def test_subordinate_uid_is_refused(users, peers):
    peers(165536)
    with connect(users) as first:
        assert b"no account of this host" in first.recv(1000)
    with connect(users) as second:
        assert second.recv(1) == b""


def test_who_is_refused_waits_before_the_next_try(users, peers):
    peers(165536)
    with connect(users) as first:
        first.recv(1000)
    begin = time.monotonic()
    with connect(users) as second:
        second.recv(1)
    assert time.monotonic() - begin >= server.REFUSED_S


def test_flood_is_answered_at_the_accounts_rate(users, monkeypatch, peers):
    monkeypatch.setattr(users, "_buckets", limits.Buckets(100, 5))
    begin = time.monotonic()
    with connect(users) as connection:
        assert all(ask(connection, b"\n") for _ in range(20))
    assert time.monotonic() - begin >= 0.1


@pytest.mark.parametrize(("beginning", "wanted"), [(b"long", b"1002 long"), (b"other", b"too long\n")])
def test_long_request_of_a_user_is_judged_by_its_beginning(users, peers, beginning, wanted):
    with connect(users) as connection:
        connection.sendall(beginning + b"x" * server.SHORT_MAX)
        if beginning == b"long":
            connection.sendall(b"\n")
        assert connection.makefile("rb").readline().startswith(wanted)


@pytest.mark.parametrize("kind", ["serving", "users"])
def test_thread_that_cannot_start_takes_no_place(request, monkeypatch, kind, peers):
    serves = request.getfixturevalue(kind)
    peers(os.geteuid() if kind == "serving" else BOB)

    def fails(thread):
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", fails)
        for _ in range(server.CONNECTIONS_MAX + 1):
            with connect(serves) as connection:
                assert connection.recv(1) == b""
    with connect(serves) as connection:
        assert ask(connection, b"after\n").endswith(b"after\n")


def test_accept_without_descriptors_does_not_spin(tmp_path, monkeypatch):
    tries = []

    def accept(listener):
        tries.append(time.monotonic())
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(server.socketserver.ThreadingUnixStreamServer, "get_request", accept)
    with run(server.Server(tmp_path / "root", answer)) as serves, connect(serves):
        wait(lambda: len(tries) > 2, interval_s=0.01)
    assert tries[1] - tries[0] >= server.BREATH_S


def test_connections_beyond_the_accounts_rate_get_no_thread(users, monkeypatch, peers):
    monkeypatch.setattr(users, "_buckets", limits.Buckets(0.001, 3))
    for _ in range(3):
        connect(users).close()
    wait(lambda: users._open[BOB] == 0, interval_s=0.01)
    with connect(users) as refused:
        assert refused.recv(1) == b""


def test_account_gets_a_socket_with_the_first_answer(users, monkeypatch, peers):
    monkeypatch.setattr(limits.Accounts, "has", lambda accounts, uid: True)
    opened = []
    monkeypatch.setattr(users.own, "open", opened.append)
    with connect(users) as connection:
        ask(connection, b"one\n")
    assert opened == [BOB]


def test_connection_to_an_accounts_socket_is_served(users, tmp_path, peers):
    here, there = socket.socketpair()
    users.take(there)
    with here:
        assert ask(here, b"one\n") == b"%d one\n" % BOB


def test_common_socket_is_served_at_its_rate(users, monkeypatch, peers):
    monkeypatch.setattr(users, "_common", limits.Buckets(20, 1))
    begin = time.monotonic()
    for _ in range(5):
        connect(users).close()
    with connect(users) as last:
        assert ask(last, b"last\n")
    assert time.monotonic() - begin >= 0.2


def test_connection_that_is_refused_has_its_price(users, monkeypatch, peers):
    monkeypatch.setattr(users, "_buckets", limits.Buckets(0.001, 100))
    held = [connect(users) for _ in range(server.CONNECTIONS_MAX)]
    assert all(ask(each, b"one\n") for each in held)
    before_s = users._buckets.wait_s(BOB, 100)
    with connect(users) as refused:
        assert refused.recv(1) == b""
    assert users._buckets.wait_s(BOB, 100) > before_s + 900
    for each in held:
        each.close()


def test_peer_that_reads_nothing_is_dropped_and_another_is_served(users, monkeypatch, peers):
    monkeypatch.setattr(server._Handler, "timeout", 0.2)
    monkeypatch.setattr(users, "answer", lambda line, uid: b"x" * 2_000_000 + b"\n")
    with connect(users) as mute:
        mute.sendall(b"one\n")
        wait(lambda: users._open[BOB] == 1, interval_s=0.01)
        peers(CAROL)
        with connect(users) as another:
            assert len(ask(another, b"two\n")) == 2_000_001
        wait(lambda: users._open[BOB] == 0, interval_s=0.01)
