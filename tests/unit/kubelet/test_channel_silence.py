"""The connection of a node that says nothing more."""

import socket

import pytest

from tests.support.files import pki
from tests.unit.kubelet.test_channel import UIDS, served, until


@pytest.fixture(scope="module")
def its_keys(tmp_path_factory):
    return pki.write(tmp_path_factory.mktemp("keys") / "pki")


def test_node_that_dies_without_a_word_is_missed_in_a_minute(its_keys, tmp_path):
    async def use(listener, supervisors):
        await supervisors[0].connect()
        await until(lambda: listener.there)
        held = listener.there[UIDS[0]]._writer.get_extra_info("socket")
        options = (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT)
        idle_s, pause_s, count = (held.getsockopt(socket.IPPROTO_TCP, option) for option in options)
        assert held.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        assert idle_s + pause_s * count <= 60

    served(its_keys, tmp_path, use)
