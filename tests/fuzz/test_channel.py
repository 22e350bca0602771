"""A supervisor that says anything whatever harms its own pod at most: not the kubelet, not another pod.

Over real TLS a hostile pod, with a credential of its own, sends frames of any length, kind and order while another pod
goes on reporting; and whatever report, end or figures the kubelet takes, all that reads them can read them.
"""

from __future__ import annotations

import asyncio
import json
import logging
import struct
import time
from contextlib import suppress

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from isthmus.kubelet.api import exec, stats
from isthmus.kubelet.channel import ChannelServer, StreamEnded
from isthmus.kubelet.credentials import Authority, server_context
from isthmus.kubelet.pods.decision import replacing
from isthmus.kubelet.pods.store import Store
from isthmus.kubelet.status import events
from isthmus.kubelet.status import pod as status
from isthmus.model.pod_job import JobState
from isthmus.podproto import frames, reports
from isthmus.podproto.frames import FrameError
from isthmus.podproto.reports import ReportError
from tests.support.fakes.supervisor import FakeSupervisor
from tests.support.files import certificates
from tests.support.pods.objects import container, pod
from tests.support.pods.statuses import at, ended, job, report, running, waiting

HOSTILE, OTHER = (f"{number}1111111-2222-3333-4444-555555555555" for number in range(2))
POD = pod(container("app"), container("side"), restartPolicy="Always")
SOON_S = 10

SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=20), st.just("\ud800"), st.just("x" * 70_000)
)
ANY = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner))
TIMES = st.sampled_from(["2026-01-02T03:00:01Z", "9999-12-31T23:59:59-23:00", "0001-01-01T00:00:00+23:00", "x", ""])
GOOD = st.sampled_from([waiting(), running(), ended(1), running(failures={"liveness": {"times": 1, "message": "no"}})])


@st.composite
def spoiled(draw, whole):
    """Draw an object with one field, at any depth, that is something else."""
    made = json.loads(json.dumps(draw(whole)))
    place, path = made, []
    while isinstance(place, dict) and place and (not path or draw(st.booleans())):
        path.append(draw(st.sampled_from(sorted(place))))
        before, place = place, place[path[-1]]
    before[path[-1]] = draw(st.one_of(ANY, TIMES))
    return made


WHOLE = st.builds(
    lambda phase, app, side: report(phase, app=app, side=side),
    st.sampled_from(["starting", "running", "stopping", "ended"]),
    GOOD,
    GOOD,
)
REPORTS = st.one_of(WHOLE, spoiled(WHOLE), spoiled(spoiled(WHOLE)), ANY)


def framed(kind, body, length=None):
    return struct.pack(">IB", len(body) + 1 if length is None else length, kind) + body


def said(content):
    return framed(0, json.dumps(content).encode())


HELLOS = st.fixed_dictionaries(
    {"type": st.just("hello"), "version": st.just(1), "uid": st.sampled_from([HOSTILE, OTHER])},
    optional={"job": st.one_of(st.just("1"), ANY), "node": st.one_of(st.just("c1"), ANY), "has_plan": ANY},
)
ENDS = st.fixed_dictionaries({"type": st.just("end")}, optional={"stream": ANY, "exit_code": ANY, "error": ANY})
SAID = st.one_of(
    st.builds(said, HELLOS),
    st.builds(said, ENDS),
    st.builds(
        lambda reported: said({"type": "report", **reported} if isinstance(reported, dict) else reported), REPORTS
    ),
    st.builds(said, ANY),
)
BYTES = st.one_of(
    SAID,
    st.builds(framed, st.integers(0, 255), st.binary(max_size=64), st.one_of(st.none(), st.integers(0, 2**32 - 1))),
    st.builds(lambda stream, body: framed(1, struct.pack(">IB", stream, 1) + body), st.integers(0, 9), st.binary()),
    st.builds(lambda count: framed(2, b"[") * count, st.integers(1, 2000)),
    st.builds(lambda count: framed(2, b"") * count, st.integers(1, 2000)),
    st.builds(lambda depth: framed(0, b"[" * depth), st.integers(1, 200_000)),
    st.binary(max_size=200),
)
FIRST = said({"type": "hello", "version": 1, "uid": HOSTILE, "job": "1", "node": "c1", "has_plan": True})


@given(st.lists(BYTES, max_size=5).map(b"".join), st.sampled_from([16, 1 << 20]))
@example(framed(0, b"[" * 100_000), 1 << 20)
@example(framed(2, b"") * 2000, 1 << 20)
def test_bytes_are_a_message_or_an_error(content, most):
    async def read():
        reader = asyncio.StreamReader()
        reader.feed_data(content)
        reader.feed_eof()
        while True:
            found = await frames.read(reader, most)
            assert isinstance(found, frames.Data) or isinstance(found["type"], str)

    with pytest.raises((FrameError, asyncio.IncompleteReadError)):
        asyncio.run(read())


def test_parts_of_one_byte_cost_no_more_than_their_bytes():
    """What has come is not copied for each part."""
    content = framed(2, b" " * 1_000_000) * 16 + framed(2, b" ") * 20_000

    async def read():
        reader = asyncio.StreamReader()
        reader.feed_data(content)
        reader.feed_eof()
        await frames.read(reader)

    began_s = time.monotonic()
    with pytest.raises(asyncio.IncompleteReadError):
        asyncio.run(read())
    assert time.monotonic() - began_s < SOON_S


@settings(max_examples=3 * settings().max_examples)
@given(REPORTS, st.sampled_from([None, *JobState]))
@example(report("running", app=running(finished="9999-12-31T23:59:59-23:00")), None)
@example(report("ended", app=[]), JobState.COMPLETED)
@example(report("running", app=running(restarts="many")), None)
@example({"type": "report", "containers": {}}, None)
def test_report_that_is_taken_can_be_shown(reported, state):
    with suppress(ReportError):
        taken = reports.checked(reported)
        shown = status.pod_status(POD, taken, job(state) if state else None, {}, at(60))
        json.dumps(shown).encode()
        found = [
            *events.changes({}, shown, None),
            *events.reported(POD, None, taken),
            *events.reported(POD, taken, taken),
        ]
        assert all(isinstance(one.message, str) for one in found)
        replacing.changed(POD, taken)
        assert taken["sequence"] >= 0


@given(st.dictionaries(st.sampled_from(["stream", "exit_code", "error"]), ANY))
def test_end_of_a_stream_that_is_taken_can_be_reported(reported):
    with suppress(ReportError):
        taken = reports.checked_end(reported)
        end = StreamEnded(taken.get("exit_code"), taken.get("error"))
        assert all(isinstance(exec.last_words(one, end), bytes) for one in exec.PROTOCOLS)


FIGURES = st.just({"time": "now", "containers": {"app": {"cpu_ns": 1, "memory_bytes": 2, "started": None}}})


@given(st.one_of(spoiled(FIGURES), ANY))
@example({"containers": []})
@example({"containers": {"app": {"cpu_ns": "much"}}})
def test_figures_that_are_taken_can_be_summed(reported):
    with suppress(ReportError):
        found = stats._pod(POD, reports.checked_figures(reported))
        stats.resources({"pods": [found], "node": {"cpu": found["cpu"], "memory": found["memory"]}})


class Listener:
    """Reads each report as the kubelet does."""

    def __init__(self):
        self.reported_by, self.there = [], {}

    async def connected(self, connection):
        self.there[connection.uid] = connection

    def reported(self, connection, reported):
        status.pod_status(POD, reported, None, {}, at(60))
        self.reported_by.append(connection.uid)

    def left(self, connection):
        pass


class Errors(logging.Handler):
    """Keeps what the channel did not expect."""

    def __init__(self):
        super().__init__(logging.ERROR)
        self.found = []

    def emit(self, record):
        self.found.append(record)


class Bed:
    """A server, and a pod that means well."""

    def __init__(self, folder):
        self.loop, self.listener, self.errors = asyncio.new_event_loop(), Listener(), Errors()
        keys = certificates.write_cluster(folder / "pki")
        authority = Authority(keys)
        self.server = ChannelServer(self.listener)
        port = self.loop.run_until_complete(
            self.server.start("127.0.0.1", 0, server_context(authority, "127.0.0.1", keys))
        )
        self.hostile, self.other = (
            self._supervisor(Store(folder / "pods").folder(uid), authority, port) for uid in (HOSTILE, OTHER)
        )
        logging.getLogger("isthmus").addHandler(self.errors)
        self.loop.run_until_complete(self.other.connect())

    def _supervisor(self, folder, authority, port):
        folder.accept({})
        folder.renew_credential(authority)
        folder.set_address("127.0.0.1", port)
        return FakeSupervisor(folder.path, "1")

    async def attack(self, content):
        """Send as the hostile pod, then report as the other; return who was heard meanwhile."""
        self.listener.reported_by.clear()
        self.errors.found.clear()
        await self.hostile.connect()
        with suppress(OSError):
            self.hostile.writer.write(content)
            await self.hostile.writer.drain()
        async with asyncio.timeout(SOON_S):
            await self.other.report("running", {}, write=False)
            while OTHER not in self.listener.reported_by:
                await asyncio.sleep(0.001)
        await self.hostile.leave()
        return [*self.listener.reported_by]

    def close(self):
        logging.getLogger("isthmus").removeHandler(self.errors)
        self.server.stop()
        self.loop.run_until_complete(self.other.leave())
        self.loop.close()


@pytest.fixture(scope="module")
def bed(tmp_path_factory):
    made = Bed(tmp_path_factory.mktemp("channel"))
    yield made
    made.close()


@given(st.lists(BYTES, min_size=1, max_size=6).map(b"".join))
@example(said({"type": "end", "stream": []}))
@example(framed(0, b"[" * 100_000))
@example(said({"type": "report", **report("running", app=7)}))
@example(said({"type": "report", **report("running"), "sequence": "1"}))
def test_hostile_pod_neither_ends_the_kubelet_nor_holds_up_another_pod(bed, content):
    heard = bed.loop.run_until_complete(bed.attack(content))
    assert heard.count(OTHER) == 1
    assert not bed.errors.found, bed.errors.found[-1].getMessage()


@pytest.mark.parametrize(
    "flood",
    [
        pytest.param(framed(2, b" " * 4) * 200_000, id="parts"),
        pytest.param(framed(1, struct.pack(">IB", 7, 1) + b"x" * 60_000) * 300, id="data"),
        pytest.param(said({"type": "end", "stream": 7}) * 20_000, id="ends"),
        pytest.param(said({"type": "report", **report("running", app=running())}) * 2_000, id="reports"),
        pytest.param(framed(0, b"[" + b"[]," * 300_000 + b"[]]"), id="many objects"),
    ],
)
def test_flood_of_one_pod_delays_no_other(bed, flood):
    assert OTHER in bed.loop.run_until_complete(bed.attack(flood))
    assert not bed.errors.found
