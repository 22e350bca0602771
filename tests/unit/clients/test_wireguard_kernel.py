"""The kernel's WireGuard by its messages; a kernel that has it is asked by tests/bench/encryption.py."""

import base64
import struct
from ipaddress import IPv4Address

import pytest

from isthmus.clients.netlink.wire import NotSupportedError, NotThereError, attributes
from isthmus.clients.wireguard import kernel
from isthmus.clients.wireguard.device import WireGuardError
from isthmus.clients.wireguard.kernel import KernelTunnel
from isthmus.clients.wireguard.keys import new_pair
from isthmus.model.networks.wireguard import Device, Peer

FAMILY = 31
OWN, FIRST, SECOND = new_pair(), new_pair(), new_pair()
PEERS = Peer(FIRST.public, IPv4Address("192.0.2.2"), 51820), Peer(SECOND.public, IPv4Address("192.0.2.3"), 5)


class FakeWire:
    """A socket that answers as linux/wireguard.h says, and keeps what it was sent."""

    def __init__(self, protocol=0):
        self.protocol, self.sent, self.answers = protocol, [], []
        self.refuses = None

    def send(self, *requests):
        if self.refuses:
            raise self.refuses
        self.sent += requests

    def read(self, request, decode):
        if request.type == 16:
            assert b"wireguard\0" in request.body
            return [decode(bytes(4) + attribute(2, b"wireguard\0") + attribute(1, struct.pack("=H", FAMILY)))]
        assert (request.type, request.body[0]) == (FAMILY, 0)
        if self.refuses:
            raise self.refuses
        return [decode(bytes(4) + answer) for answer in self.answers]

    def close(self):
        pass


def attribute(kind, value):
    return struct.pack("=HH", len(value) + 4, kind) + value + bytes(-len(value) % 4)


def key(text):
    return base64.b64decode(text)


def peer(each, handshake=0, mask=32):
    endpoint = struct.pack("=H", 2) + struct.pack(">H4s8x", each.port, each.address.packed)
    allowed = attribute(1, struct.pack("=H", 2)) + attribute(2, each.address.packed) + attribute(3, bytes([mask]))
    return attribute(
        0x8000,
        attribute(1, key(each.public_key))
        + attribute(4, endpoint)
        + attribute(6, struct.pack("=qq", handshake, 0))
        + attribute(0x8009, attribute(0x8000, allowed)),
    )


@pytest.fixture
def wires(monkeypatch):
    made = []

    def make(protocol=0):
        made.append(FakeWire(protocol))
        return made[-1]

    monkeypatch.setattr(kernel, "Wire", make)
    return made


@pytest.fixture
def tunnel(wires):
    made = KernelTunnel()
    made.read()
    assert [wire.protocol for wire in wires] == [0, 16]
    return made


def test_device_in_several_messages_is_read_whole(tunnel, wires):
    head = attribute(4, key(OWN.public)) + attribute(3, OWN.private) + attribute(6, struct.pack("=H", 51820))
    wires[1].answers = [head + attribute(0x8008, peer(PEERS[0], 77)), attribute(0x8008, peer(PEERS[1]))]
    wanted = Device(OWN.public, 51820, {each.public_key: each for each in PEERS}, {FIRST.public: 77})
    assert tunnel.read() == wanted


def test_device_without_a_key_has_none(tunnel, wires):
    wires[1].answers = [attribute(4, bytes(32)) + attribute(6, struct.pack("=H", 0))]
    assert tunnel.read() == Device()


def test_peer_that_may_send_from_more_than_its_address_is_to_be_set_again(tunnel, wires):
    wires[1].answers = [attribute(0x8008, peer(PEERS[0], mask=0))]
    assert tunnel.read().peers[FIRST.public] != PEERS[0]


def test_device_that_is_not_there_is_none(tunnel, wires):
    wires[1].refuses = NotThereError("read iw0", 19)
    assert tunnel.read() is None


def test_kernel_without_wireguard_is_refused_with_the_remedy(tunnel, wires):
    wires[0].refuses = NotSupportedError("make wireguard iw0", 95)
    with pytest.raises(WireGuardError, match=r"no WireGuard: .*network_wireguard_program: wireguard-go"):
        tunnel.make()


def test_key_is_set_with_the_port(tunnel, wires):
    tunnel.set_key(OWN.private, 51820)
    (request,) = wires[1].sent
    found = attributes(request.body[4:])
    assert (request.type, request.body[0]) == (FAMILY, 1)
    assert (found[2], found[3], found[6]) == (b"iw0\0", OWN.private, struct.pack("=H", 51820))
    assert OWN.private.hex() not in request.what


def peers_of(request):
    return [attributes(each) for each in kernel._parts(attributes(request.body[4:])[8])]


def test_peers_are_removed_before_others_are_added(tunnel, wires):
    tunnel.change([FIRST.public], [PEERS[1]])
    gone, new = wires[1].sent
    (removed,), (added,) = peers_of(gone), peers_of(new)
    assert (removed[1], removed[3]) == (key(FIRST.public), struct.pack("=I", 1))
    assert (added[1], added[3]) == (key(SECOND.public), struct.pack("=I", 2))
    assert added[4] == struct.pack("=H", 2) + struct.pack(">H4s8x", 5, PEERS[1].address.packed)
    (allowed,) = [attributes(each) for each in kernel._parts(added[9])]
    assert (allowed[2], allowed[3]) == (PEERS[1].address.packed, b"\x20")


def test_what_is_set_is_what_is_read(tunnel, wires):
    tunnel.change([], PEERS)
    (request,) = wires[1].sent
    wires[1].answers = [request.body[4:]]
    assert tunnel.read().peers == {each.public_key: each for each in PEERS}


def test_thousand_peers_are_set_by_messages_that_fit(tunnel, wires):
    many = [Peer(new_pair().public, IPv4Address(number)) for number in range(1, 1001)]
    tunnel.change([], many)
    assert sum(len(peers_of(request)) for request in wires[1].sent) == 1000
    assert max(len(request.body) for request in wires[1].sent) < 2**14


def test_nothing_to_change_is_no_message(tunnel, wires):
    tunnel.change([], [])
    tunnel.wake([])
    assert wires[1].sent == []


def test_session_begins_by_a_keepalive_that_is_switched_on_and_off(tunnel, wires):
    tunnel.wake([FIRST.public])
    intervals = [peers_of(request)[0][5] for request in wires[1].sent]
    assert intervals == [struct.pack("=H", 1), struct.pack("=H", 0)]
    assert all(peers_of(request)[0][3] == struct.pack("=I", 4) for request in wires[1].sent)
