"""A gateway that dies: real packets, and daemons' loops over a real etcd."""

import socket
import time

import pytest

from tests.support.networks.gateway_daemons import Daemons
from tests.support.networks.gateways import ALICE_SEEN, WEB
from tests.support.networks.namespaces import TCP, needs_root
from tests.support.networks.pod_networks import OPEN
from tests.support.wait import wait

pytestmark = needs_root
FAILOVER_S = 5.0


@pytest.fixture
def daemons(tmp_path):
    with Daemons.of(tmp_path) as made:
        yield made


def connected(gated):
    """Return both ends of a connection of alice's pod to the outside."""
    with gated.place("outside").open(TCP, OPEN, 7100) as server:
        server.listen()
        connection = gated.pod(1).do(socket.create_connection, (str(OPEN), 7100), 15)
        return connection, server.accept()[0]


def test_connections_go_on_within_5_s_after_a_gateway_died(daemons):
    gated, first = daemons.gated, daemons.leading
    connection, far = connected(gated)
    gated.place(first).ip("link set eth0 down")
    daemons.made[first].dead.set()
    begun = time.monotonic()
    wait(lambda: daemons.goes_out(wait_s=0.2), timeout_s=30, interval_s=0.05)
    assert time.monotonic() - begun <= FAILOVER_S
    assert daemons.leading not in ("", first)
    assert gated.place("outside").asks(ALICE_SEEN, WEB), "what comes in does, too"
    with connection, far:
        connection.send(b"still here")
        far.settimeout(15)
        assert far.recv(99) == b"still here", "what was open, too, for its address is the same"
