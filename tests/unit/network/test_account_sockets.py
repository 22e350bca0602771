"""A socket for each account, with real connections."""

import os
import socket
import threading
import time

import pytest

from isthmus.network.api import account_sockets, client
from isthmus.network.api.account_sockets import AccountSockets
from isthmus.supervisor import services

ME = os.geteuid()


@pytest.fixture
def taken():
    return []


@pytest.fixture
def waits():
    """Uid -> seconds until it has paid."""
    return {}


@pytest.fixture
def sockets(tmp_path, taken, waits):
    made = AccountSockets(tmp_path / "accounts", lambda uid: waits.get(uid, 0.0), taken.append, at_most=2)
    yield made
    made.close()


def connect(tmp_path, uid=ME):
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(5)
    connection.connect(str(tmp_path / "accounts" / str(uid)))
    return connection


def test_socket_is_its_accounts_alone(sockets, tmp_path):
    sockets.open(ME)
    found = os.stat(tmp_path / "accounts" / str(ME))
    assert (found.st_uid, found.st_mode & 0o777) == (ME, 0o600)


def test_socket_that_cannot_be_given_away_is_no_trap(sockets, tmp_path, monkeypatch):
    def fails(path, uid, gid):
        raise PermissionError("no CAP_CHOWN")

    monkeypatch.setattr(os, "chown", fails)
    sockets.open(ME)
    assert os.listdir(tmp_path / "accounts") == []


def test_connections_are_passed_on_one_after_the_other(sockets, tmp_path, taken):
    sockets.open(ME)
    with connect(tmp_path), connect(tmp_path):
        for number in (1, 2):
            sockets.serve_once(1)
            assert len(taken) == number


def test_account_over_its_rate_waits_in_its_own_queue(sockets, tmp_path, taken, waits):
    waits[ME] = 0.2
    sockets.open(ME)
    with connect(tmp_path), connect(tmp_path):
        begin = time.monotonic()
        sockets.serve_once(1)
        sockets.serve_once(0.05)
        assert len(taken) == 1
        while len(taken) < 2:
            sockets.serve_once(1)
    assert time.monotonic() - begin >= 0.2


def test_caller_sleeps_when_the_accounts_queue_is_full(sockets, tmp_path, monkeypatch, waits):
    monkeypatch.setattr(account_sockets, "QUEUE", 0)
    waits[ME] = 60
    sockets.open(ME)
    with connect(tmp_path), pytest.raises(BlockingIOError):
        connect(tmp_path)


@pytest.mark.skipif(ME != 0, reason="gives sockets to others")
def test_flood_of_one_account_holds_up_no_other(sockets, tmp_path, taken, waits):
    waits[ME] = 60
    sockets.open(ME)
    sockets.open(ME + 1)
    held = [connect(tmp_path) for _ in range(20)]
    sockets.serve_once(1)
    with connect(tmp_path, ME + 1):
        sockets.serve_once(1)
    assert len(taken) == 2
    for each in held:
        each.close()


@pytest.mark.skipif(ME != 0, reason="gives sockets to others")
def test_socket_unused_for_longest_makes_room(sockets, tmp_path, taken):
    sockets.open(1)
    sockets.open(ME)
    with connect(tmp_path, 1):
        sockets.serve_once(1)
    sockets.open(2)
    assert sorted(os.listdir(tmp_path / "accounts")) == ["1", "2"]
    with connect(tmp_path, 2):
        sockets.serve_once(1)
    assert len(taken) == 2


def test_sockets_of_an_earlier_daemon_are_replaced(tmp_path, taken):
    for _ in range(2):
        made = AccountSockets(tmp_path / "accounts", lambda uid: 0.0, taken.append)
        made.open(ME)
        with connect(tmp_path):
            made.serve_once(1)
    assert len(taken) == 2


def test_socket_opened_while_others_are_waited_for_is_served(sockets, tmp_path, taken):
    waiting = threading.Thread(target=sockets.serve_once, args=(5,))
    waiting.start()
    sockets.open(ME)
    with connect(tmp_path):
        waiting.join()
    assert len(taken) == 1


def test_commands_and_pods_ask_at_the_accounts_socket(sockets, tmp_path, monkeypatch):
    common = tmp_path / "networkd.sock"
    monkeypatch.setattr(client, "SOCKET", common)
    monkeypatch.setattr(os, "geteuid", lambda: 1001)
    assert client.own_socket() == services.own_socket(common) == common
    sockets.open(1001)
    assert client.own_socket() == services.own_socket(common) == client.account_socket(common, 1001)
