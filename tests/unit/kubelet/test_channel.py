"""The port that supervisors dial, with real TLS on the loopback."""

import asyncio
import ssl

import pytest

from isthmus.kubelet.channel import ChannelServer, Patience
from isthmus.kubelet.credentials import Authority, server_context
from isthmus.kubelet.pods.store import Store
from isthmus.podproto import WINDOWS, frames, windows
from isthmus.podproto.frames import Channel
from tests.support.fakes.supervisor import FakeSupervisor
from tests.support.files import certificates

UIDS = [f"{number}1111111-2222-3333-4444-555555555555" for number in range(3)]


class Listener:
    def __init__(self):
        self.there, self.reports, self.gone = {}, [], []

    async def connected(self, connection):
        self.there[connection.uid] = connection

    def reported(self, connection, report):
        self.reports.append((connection.uid, report["phase"]))

    def left(self, connection):
        self.gone.append(connection.uid)


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    return certificates.write_cluster(tmp_path_factory.mktemp("keys") / "pki")


def served(keys, tmp_path, use, features=(WINDOWS,), patience=None):
    """Run a test with a server and the folders of three pods."""

    async def run():
        listener, authority = Listener(), Authority(keys)
        server = ChannelServer(listener, patience)
        port = await server.start("127.0.0.1", 0, server_context(authority, "127.0.0.1", keys))
        folders = [Store(tmp_path / "pods").folder(uid) for uid in UIDS]
        for folder in folders:
            folder.accept({})
            folder.renew_credential(authority)
            folder.set_address("127.0.0.1", port)
        supervisors = [FakeSupervisor(folder.path, "1", features) for folder in folders]
        try:
            async with asyncio.timeout(20):
                return await use(listener, supervisors)
        finally:
            server.stop()
            for supervisor in supervisors:
                await supervisor.leave()

    return asyncio.run(run())


async def until(true):
    while not true():
        await asyncio.sleep(0.005)


async def opened(listener, supervisor):
    """Connect a supervisor and open a stream to it."""
    await supervisor.connect()
    await until(lambda: listener.there)
    connection = listener.there[UIDS[0]]
    return connection, await connection.open({"type": "forward", "port": 8080})


def test_reports_come_from_who_is_certified(keys, tmp_path):
    async def use(listener, supervisors):
        await supervisors[0].connect()
        await supervisors[0].report("running", {})
        await until(lambda: listener.reports)
        await supervisors[0].leave()
        await until(lambda: listener.gone)
        assert (listener.reports, listener.gone) == ([(UIDS[0], "running")], [UIDS[0]])

    served(keys, tmp_path, use)


def test_pod_cannot_speak_for_another(keys, tmp_path):
    async def use(listener, supervisors):
        liar = supervisors[0]
        say = liar.say
        liar.say = lambda message: say({**message, "uid": UIDS[1]})
        await liar.connect()
        await liar.closed.wait()
        assert not listener.there

    served(keys, tmp_path, use)


def test_stranger_does_not_get_in(keys, tmp_path):
    async def use(listener, supervisors):
        other = Authority(certificates.write_cluster(tmp_path / "other"))
        made = other.pod(UIDS[0])
        for name, text in (("tls.crt", made.certificate), ("tls.key", made.key)):
            (supervisors[0].folder / "credential" / name).write_text(text)
        with pytest.raises((OSError, asyncio.IncompleteReadError)):
            await supervisors[0].connect()
            await supervisors[0].reader.readexactly(1)
        assert not listener.there

    served(keys, tmp_path, use)


@pytest.mark.parametrize("is_refreshed", [True, False])
def test_running_pod_of_the_old_authority_comes_back(keys, tmp_path, is_refreshed):
    new = certificates.succeeded(keys, tmp_path / "new")

    async def use(listener, supervisors):
        old = Authority(keys)
        made = old.pod(UIDS[0])
        credential = supervisors[0].folder / "credential"
        for name, text in (("tls.crt", made.certificate), ("tls.key", made.key)):
            (credential / name).write_text(text)
        if is_refreshed:
            await supervisors[0].connect()
            await until(lambda: listener.there)
            return
        (credential / "ca.crt").write_text(old.certificate)
        with pytest.raises(ssl.SSLCertVerificationError, match="verify failed"):
            await supervisors[0].connect()

    served(new, tmp_path, use)


def test_key_of_a_pod_is_not_good_for_a_server(keys, tmp_path):
    made = Authority(keys).pod(UIDS[0])
    (tmp_path / "tls.crt").write_text(made.certificate)
    (tmp_path / "tls.key").write_text(made.key)

    async def use():
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(tmp_path / "tls.crt", tmp_path / "tls.key")
        server = await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", 0, ssl=tls)
        trusting = ssl.create_default_context(cafile=str(keys / "pods-ca.crt"))
        trusting.check_hostname = False
        with pytest.raises(ssl.SSLCertVerificationError, match="purpose"):
            await asyncio.open_connection("127.0.0.1", server.sockets[0].getsockname()[1], ssl=trusting)
        server.close()

    asyncio.run(use())


@pytest.mark.parametrize("sent", [b"GET / HTTP/1.1\r\n\r\n", frames.message({"type": "report"}), b"\xff" * 8])
def test_other_words_end_one_connection(keys, tmp_path, sent):
    async def use(listener, supervisors):
        await supervisors[1].connect()
        await supervisors[0].connect()
        await until(lambda: len(listener.there) == 2)
        supervisors[0].writer.write(sent)
        if b"report" in sent:
            supervisors[0].writer.write(frames.message({"type": "unknown"}))
        await supervisors[0].closed.wait()
        await supervisors[1].report("running", {})
        await until(lambda: (UIDS[1], "running") in listener.reports)

    served(keys, tmp_path, use)


def test_new_connection_takes_the_place_of_the_old(keys, tmp_path):
    async def use(listener, supervisors):
        await supervisors[0].connect()
        await until(lambda: listener.there)
        stream = await listener.there[UIDS[0]].open({"type": "attach", "container": "main"})
        again = FakeSupervisor(supervisors[0].folder, "1")
        await again.connect()
        assert [item async for item in stream] == []
        assert "disconnected" in stream.end.error
        await again.leave()

    served(keys, tmp_path, use)


def test_reader_of_an_older_supervisor_who_takes_nothing_loses_his_stream_only(keys, tmp_path):
    async def use(listener, supervisors):
        _, stream = await opened(listener, supervisors[0])
        for _ in range(20):
            await stream.send(Channel.STDIN, b"x")
        await until(lambda: stream.end)
        await supervisors[0].report("running", {})
        await until(lambda: listener.reports)
        assert stream.end.error == "cancelled"

    served(keys, tmp_path, use, features=(), patience=Patience(4, 0.1))


def test_slow_reader_gets_all_that_came_before_the_end(keys, tmp_path):
    sent = [b"%d" % number for number in range(5)]

    async def use(listener, supervisors):
        connection, stream = await opened(listener, supervisors[0])
        ended = asyncio.create_task(end(connection, stream))
        # The queue is full before anything is read.
        await asyncio.sleep(0)
        read = [item.body async for item in stream]
        await ended
        assert (read, stream.end.exit_code) == (sent, 0)

    async def end(connection, stream):
        for body in sent:
            await connection.take(frames.Data(stream.number, Channel.STDOUT, body))
        await connection.take({"type": "end", "stream": stream.number, "exit_code": 0})

    served(keys, tmp_path, use, patience=Patience(4))


def test_end_that_nobody_takes_holds_up_the_pod_for_a_time_only(keys, tmp_path):
    async def use(listener, supervisors):
        connection, stream = await opened(listener, supervisors[0])
        await connection.take(frames.Data(stream.number, Channel.STDOUT, b"x"))
        await connection.take({"type": "end", "stream": stream.number, "exit_code": 0})
        assert [item async for item in stream] == []
        assert stream.end.error == "cancelled"

    served(keys, tmp_path, use, features=(), patience=Patience(1, 0.1))


def test_reader_who_takes_nothing_delays_nobody_and_loses_nothing(keys, tmp_path):
    body = bytes(range(256)) * (3 * windows.WINDOW_BYTES // 256)

    async def use(listener, supervisors):
        connection, stream = await opened(listener, supervisors[0])
        other = await connection.open({"type": "exec", "argv": ["true"], "stdin": False})
        await until(lambda: stream.number in supervisors[0].outgoing)
        sent = asyncio.create_task(supervisors[0]._send(stream.number, Channel.STDOUT, body))
        await until(lambda: supervisors[0].outgoing[stream.number].is_waiting)
        assert [item.body async for item in other] == [b"true\n", b"to stderr\n"]
        await supervisors[0].report("running", {})
        await until(lambda: listener.reports)
        read = b""
        async for item in stream:
            read += item.body
            if len(read) == len(body):
                break
        await sent
        assert read == body

    served(keys, tmp_path, use)


def test_more_than_the_window_ends_the_connection(keys, tmp_path):
    async def use(listener, supervisors):
        _, stream = await opened(listener, supervisors[0])
        for _ in range(windows.WINDOW_BYTES // frames.CHUNK_BYTES + 1):
            supervisors[0].writer.write(frames.data(stream.number, Channel.STDOUT, bytes(frames.CHUNK_BYTES)))
        await supervisors[0].closed.wait()
        await until(lambda: stream.end)
        assert stream.end.is_gone

    served(keys, tmp_path, use)


def test_end_lets_go_who_waits_to_send(keys, tmp_path):
    async def use(listener, supervisors):
        _, stream = await opened(listener, supervisors[0])
        await supervisors[0].leave()
        sent = asyncio.create_task(stream.send(Channel.STDIN, bytes(4 * windows.WINDOW_BYTES)))
        await until(lambda: listener.gone)
        await sent
        assert stream.end.is_gone

    served(keys, tmp_path, use)


def test_stream_to_one_that_has_gone_is_at_its_end(keys, tmp_path):
    async def use(listener, supervisors):
        await supervisors[0].connect()
        await until(lambda: listener.there)
        await supervisors[0].leave()
        await until(lambda: listener.gone)
        stream = await listener.there[UIDS[0]].open({"type": "exec", "argv": ["true"]})
        assert [item async for item in stream] == []
        assert stream.end.is_gone

    served(keys, tmp_path, use)
