"""WireGuard's program by its socket; the real one is in tests/integration/test_encryption.py."""

import base64
import socketserver
import threading
from ipaddress import IPv4Address

import pytest

from isthmus.clients.wireguard.device import WireGuardError
from isthmus.clients.wireguard.keys import new_pair
from isthmus.clients.wireguard.program import ProgramTunnel
from isthmus.model.networks.wireguard import Device, Peer

OWN, FIRST, SECOND = new_pair(), new_pair(), new_pair()
PEER = Peer(FIRST.public, IPv4Address("192.0.2.2"), 51820)


class Program(socketserver.UnixStreamServer):
    """Answers one text, and keeps what it was asked."""

    answer = "errno=0\n\n"

    def __init__(self, path):
        super().__init__(str(path), Handler)
        self.asked = []


class Handler(socketserver.StreamRequestHandler):
    def handle(self):
        lines = list(iter(lambda: self.rfile.readline().decode(), "\n"))
        self.server.asked.append("".join(lines))
        self.wfile.write(self.server.answer.encode())


@pytest.fixture
def program(tmp_path):
    with Program(tmp_path / "iw0.sock") as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture
def tunnel(program, tmp_path):
    return ProgramTunnel(folder=tmp_path)


def hexed(key):
    return base64.b64decode(key).hex()


def test_device_is_read(tunnel, program):
    program.answer = (
        f"private_key={OWN.private.hex()}\nlisten_port=51820\nfwmark=0\n"
        f"public_key={hexed(FIRST.public)}\npreshared_key={'0' * 64}\nprotocol_version=1\nendpoint=192.0.2.2:51820\n"
        "last_handshake_time_sec=77\nlast_handshake_time_nsec=5\ntx_bytes=1\nrx_bytes=2\n"
        "persistent_keepalive_interval=0\nallowed_ip=192.0.2.2/32\n"
        f"public_key={hexed(SECOND.public)}\nlast_handshake_time_sec=0\nallowed_ip=0.0.0.0/0\nerrno=0\n\n"
    )
    wanted = {FIRST.public: PEER, SECOND.public: Peer(SECOND.public, IPv4Address(0), 0)}
    assert tunnel.read() == Device(OWN.public, 51820, wanted, {FIRST.public: 77})


def test_device_without_a_key_has_none(tunnel, program):
    program.answer = "errno=0\n\n"
    assert tunnel.read() == Device()


def test_changes_are_one_message(tunnel, program):
    tunnel.change([SECOND.public], [PEER])
    assert program.asked == [
        f"set=1\npublic_key={hexed(SECOND.public)}\nremove=true\npublic_key={hexed(FIRST.public)}\n"
        "endpoint=192.0.2.2:51820\nreplace_allowed_ips=true\nallowed_ip=192.0.2.2/32\n"
    ]


def test_nothing_to_change_is_no_message(tunnel, program):
    tunnel.change([], [])
    tunnel.wake([])
    assert program.asked == []


def test_session_begins_by_a_keepalive_that_is_switched_on_and_off(tunnel, program):
    tunnel.wake([FIRST.public])
    assert [text.splitlines()[-1] for text in program.asked] == [
        "persistent_keepalive_interval=1",
        "persistent_keepalive_interval=0",
    ]


def test_refused_key_is_not_in_the_error(tunnel, program):
    program.answer = "errno=-22\n\n"
    with pytest.raises(WireGuardError) as refused:
        tunnel.set_key(OWN.private, 51820)
    assert "error -22" in str(refused.value)
    assert OWN.private.hex() not in str(refused.value)
    assert program.asked == [f"set=1\nprivate_key={OWN.private.hex()}\nlisten_port=51820\n"]


def test_program_that_does_not_run_is_waited_for_and_named(tmp_path):
    tunnel = ProgramTunnel(folder=tmp_path, start_s=0.1)
    assert tunnel.read() is None
    with pytest.raises(WireGuardError, match="systemctl status isthmus-wireguard"):
        tunnel.make()
    with pytest.raises(WireGuardError, match="systemctl status isthmus-wireguard"):
        tunnel.set_key(OWN.private, 1)
