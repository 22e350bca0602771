"""Services on their way through the supervisor, to a daemon that may be slow, away or of another mind."""

import asyncio

import pytest

from isthmus.model.services import changes, rows
from isthmus.network.api.messages import ErrorCode, JobServices
from isthmus.network.api.protocol import LINE_MAX, accept, parse_request, refuse
from isthmus.supervisor import services
from isthmus.supervisor.services import Services
from tests.support.pods.services import answering, place

WEB, DNS = place(), place("10.96.0.10", 53)
ONE = {WEB: answering("10.64.0.3:8080")}
TWO = ONE | {DNS: answering("10.64.0.2:53", affinity_s=9)}


class Daemon:
    """Reads requests as isthmus-networkd does; answers as it is configured, by default that all is well."""

    def __init__(self, path):
        self.path, self.got, self.replies, self.server = path, [], [], None

    async def start(self):
        self.server = await asyncio.start_unix_server(self._serve, str(self.path), limit=LINE_MAX)

    async def stop(self):
        self.server.close()
        await self.server.wait_closed()
        self.path.unlink(missing_ok=True)

    async def _serve(self, reader, writer):
        request = parse_request(await reader.readline())
        assert isinstance(request, JobServices)
        self.got.append(request)
        writer.write(self.replies.pop(0) if self.replies else accept())
        writer.close()


def reported(table, before=None):
    """Return the kubelet's message."""
    changed, gone = changes(before or {}, table)
    return {"type": "services", "whole": before is None, "set": changed, "drop": gone}


@pytest.fixture
def play(tmp_path):
    """Play a scene with a daemon that has started, Services, and what they say of themselves."""

    def run(scene):
        async def all_of_it():
            daemon, said = Daemon(tmp_path / "daemon.sock"), []
            await daemon.start()
            made = Services("7", said.append, daemon.path, pauses_s=(0.001, 0.002))
            async with asyncio.timeout(20):
                await scene(made, daemon, said)
            await made.end()
            await daemon.stop()

        asyncio.run(all_of_it())

    return run


async def until(ready):
    while not ready():
        await asyncio.sleep(0.001)


def test_daemon_gets_all_services_of_the_job(play):
    async def scene(made, daemon, said):
        made.take(reported(TWO))
        await made.applied(20)
        assert daemon.got == [JobServices(7, TWO)]
        assert said == [""]

    play(scene)


def test_change_is_merged_and_sent_whole(play):
    async def scene(made, daemon, said):
        for table, before in ((TWO, None), (ONE, TWO), ({WEB: answering()}, ONE), ({}, {WEB: answering()})):
            made.take(reported(table, before))
            await until(lambda table=table: daemon.got and daemon.got[-1].services == table)
        assert len(daemon.got) == 4

    play(scene)


def test_kubelet_that_comes_back_with_the_same_costs_no_request(play):
    async def scene(made, daemon, said):
        made.take(reported(ONE))
        await made.applied(20)
        made.take(reported(ONE))
        await until(lambda: not made._changed.is_set())
        made.take(reported(TWO))
        await until(lambda: len(daemon.got) > 1)
        assert [request.services for request in daemon.got] == [ONE, TWO]

    play(scene)


def test_pod_without_services_waits_for_nothing(play):
    async def scene(made, daemon, said):
        await made.applied(20)
        assert daemon.got == said == []

    play(scene)


def test_daemon_that_comes_back_gets_what_is_known_by_then(play):
    async def scene(made, daemon, said):
        await daemon.stop()
        made.take(reported(ONE))
        await until(lambda: said)
        assert "daemon.sock" in said[0]
        made.take(reported(TWO, ONE))
        await daemon.start()
        await made.applied(20)
        assert daemon.got[-1] == JobServices(7, TWO)
        assert said[-1] == ""

    play(scene)


@pytest.mark.parametrize("reply", [b"", b"no JSON\n", b"{}\n", b"[]\n", refuse(ErrorCode.UNAVAILABLE, "etcd is away")])
def test_passing_failure_is_tried_again_and_not_reported(play, reply):
    async def scene(made, daemon, said):
        daemon.replies = [reply, reply]
        made.take(reported(ONE))
        await made.applied(20)
        assert len(daemon.got) == 3
        assert said == [""]

    play(scene)


def test_refusal_is_reported_and_holds_up_no_container(play):
    async def scene(made, daemon, said):
        daemon.replies = [refuse(ErrorCode.INVALID, "10.96.0.9 is no address of a Service")]
        made.take(reported(ONE))
        await made.applied(20)
        assert said == ["10.96.0.9 is no address of a Service"]
        # What comes next is tried at once.
        made.take(reported(TWO, ONE))
        await until(lambda: len(daemon.got) == 2)
        await until(lambda: said[-1] == "")

    play(scene)


def test_container_does_not_wait_for_a_silent_daemon(play):
    async def scene(made, daemon, said):
        await daemon.stop()
        made.take(reported(ONE))
        await made.applied(0.01)
        assert daemon.got == []

    play(scene)


@pytest.mark.parametrize(
    "changed",
    [
        {"set": [7]},
        {"set": [["10.96.0.9"]]},
        {"set": None},
        {"drop": None},
        {"set": ...},
        {"drop": ...},
        {"whole": ...},
    ],
)
def test_message_of_another_form_changes_nothing(play, changed):
    async def scene(made, daemon, said):
        message = {name: value for name, value in {**reported(ONE), **changed}.items() if value is not ...}
        with pytest.raises((ValueError, KeyError)):
            made.take(message)
        await made.applied(20)
        assert daemon.got == []

    play(scene)


def test_rows_are_those_of_the_model():
    assert services._key(rows(ONE)[0]) == str(WEB)
