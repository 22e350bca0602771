"""A connection by which nothing is said."""

import socket
import tracemalloc

import pytest

from tests.support.files import certificates
from tests.unit.kubelet.test_channel import UIDS, served, until


@pytest.fixture(scope="module")
def its_keys(tmp_path_factory):
    return certificates.write_cluster(tmp_path_factory.mktemp("keys") / "pki")


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


def test_idle_connection_costs_little_memory(its_keys, tmp_path):
    """There is one for each pod; both ends are in this process here."""

    async def use(listener, supervisors):
        tracemalloc.start()
        try:
            for supervisor in supervisors:
                await supervisor.connect()
            await until(lambda: len(listener.there) == len(supervisors))
            return tracemalloc.get_traced_memory()[0] / len(supervisors)
        finally:
            tracemalloc.stop()

    assert served(its_keys, tmp_path, use) < 200_000
