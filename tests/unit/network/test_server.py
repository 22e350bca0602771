"""The daemon's socket, with real connections."""

import os
import socket
import threading

import pytest

from isthmus.network import server


@pytest.fixture
def serving(tmp_path):
    serves = server.Server(tmp_path / "run" / "socket", lambda line, uid: b"%d %s" % (uid, line.rstrip() + b"\n"))
    thread = threading.Thread(target=serves.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield serves
    serves.shutdown()
    serves.server_close()
    thread.join()


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


def test_line_too_long_ends_the_connection(serving):
    with connect(serving) as connection:
        connection.sendall(b"x" * (server.LINE_MAX + 1))
        lines = connection.makefile("rb")
        assert len(lines.readline()) > server.LINE_MAX
        assert lines.readline() == b""


def test_peer_that_leaves_harms_nobody(serving):
    with connect(serving) as connection:
        connection.sendall(b"half")
    with connect(serving) as connection:
        assert ask(connection, b"next\n").endswith(b"next\n")


def test_socket_left_by_a_killed_daemon_is_replaced(serving, tmp_path):
    left = tmp_path / "left"
    left.write_text("")
    server.Server(left, lambda line, uid: line).server_close()


def test_everybody_may_connect(serving):
    assert os.stat(serving.server_address).st_mode & 0o777 == 0o666


def test_user_with_too_many_connections_is_refused(serving, monkeypatch):
    monkeypatch.setattr(server, "peer", lambda connection: 1001)
    held = [connect(serving) for _ in range(server.CONNECTIONS_MAX)]
    assert all(ask(each, b"one\n") for each in held)
    with connect(serving) as refused:
        assert refused.recv(1) == b""
    held[0].close()
    for each in held[1:]:
        assert ask(each, b"two\n")
        each.close()


def test_root_is_not_counted(serving, monkeypatch):
    monkeypatch.setattr(server, "peer", lambda connection: 0)
    held = [connect(serving) for _ in range(server.CONNECTIONS_MAX + 2)]
    assert all(ask(each, b"one\n") for each in held)
    for each in held:
        each.close()
