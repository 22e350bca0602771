"""Asking the daemon, on real sockets."""

import os
import socket
import threading

import pytest

from isthmus.network.api import client
from isthmus.network.api.messages import Status
from isthmus.network.api.protocol import accept


@pytest.fixture
def listener(tmp_path):
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "socket"))
        listening.listen(0)
        yield listening


def dial(path):
    """Fill a place of the queue."""
    caller = socket.socket(socket.AF_UNIX)
    caller.settimeout(1)
    caller.connect(path)
    return caller


def test_queue_that_is_full_is_waited_for(listener):
    path = listener.getsockname()
    waiting = dial(path)
    with pytest.raises(BlockingIOError):
        dial(path)

    def serve():
        listener.accept()[0].close()
        with listener.accept()[0] as connection:
            connection.recv(1000)
            connection.sendall(accept({"node": "c1"}))

    thread = threading.Timer(0.1, serve)
    thread.start()
    assert client.ask(Status(), path) == {"node": "c1"}
    thread.join()
    waiting.close()


def test_queue_that_stays_full_is_reported_in_time(listener):
    path = listener.getsockname()
    with dial(path), pytest.raises(BlockingIOError):
        client.ask(Status(), path, timeout_s=0.1)


def test_root_has_a_socket_of_its_own(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert client.own_socket() == client.ROOT_SOCKET
    monkeypatch.setattr(os, "geteuid", lambda: 1001)
    assert client.own_socket() == client.SOCKET
