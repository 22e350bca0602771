"""Ports that are free, and stay so until somebody listens there."""

import socket

import pytest

from isthmus.clients import sockets


@pytest.fixture
def connections(tmp_path):
    """Write down which ports the kernel gives to connections."""

    def write(first):
        path = tmp_path / "ip_local_port_range"
        path.write_text(f"{first}\t60999\n")
        return path

    return write


def test_ports_are_different_and_below_those_of_connections(connections):
    found = sockets.free_ports(6, connections(20_000))
    assert len(set(found)) == 6
    assert all(10_000 <= port < 20_000 for port in found)


def test_port_that_somebody_listens_on_is_passed_over(connections, monkeypatch):
    with socket.create_server(("", 0)) as server:
        taken = server.getsockname()[1]
        monkeypatch.setattr(sockets, "_LOWEST", taken - 3)
        found = sockets.free_ports(4, connections(taken + 1))
    assert len(set(found)) == 4
    assert taken not in found


def test_machine_whose_connections_have_all_ports_gives_any(connections):
    found = sockets.free_ports(3, connections(1024))
    assert len(set(found)) == 3
    assert 0 not in found
