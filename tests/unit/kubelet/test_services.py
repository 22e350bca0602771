"""Services sent to supervisors: the whole table first, then changes; no supervisor waits for another."""

import asyncio

import pytest

from isthmus.clients.kube.api import Event
from isthmus.kubelet.objects.services import FIRST_S, Services
from isthmus.kubelet.objects.servicetable import SERVICES, SLICES
from tests.support import virtual_time
from tests.support.pods.services import endpoint, service, slice_of

WEB = "10.96.0.9 tcp 80"


class Api:
    """Services and EndpointSlices: lists, once `open` is set, then events."""

    def __init__(self):
        self.open = asyncio.Event()
        self.items = {SERVICES: [service()], SLICES: []}
        self.events = {path: asyncio.Queue() for path in self.items}

    async def get(self, path, query):
        await self.open.wait()
        items = self.items[path]
        return {"apiVersion": "v1", "kind": "XList", "items": items, "metadata": {"resourceVersion": "1"}}

    async def watch(self, path, version, query):
        while True:
            kind, one = await self.events[path].get()
            one["metadata"]["resourceVersion"] = "2"
            yield Event(kind, one)


class Connection:
    """A supervisor, and the messages it got; a stuck one reads nothing."""

    def __init__(self, uid, *, stuck=False):
        self.uid, self.is_closed, self.got, self.stuck = uid, False, [], stuck

    async def send(self, message):
        if self.stuck:
            await asyncio.Event().wait()
        self.got.append(message)


@pytest.fixture
def play():
    """Play a scene, in virtual time, with an API server that does not answer yet."""

    def run(scene, *, enabled=True):
        async def all_of_it(clock):
            api = Api()
            made = Services(api, None, enabled=enabled)
            task = asyncio.create_task(made.run())
            async with asyncio.timeout(3 * FIRST_S):
                await scene(made, api)
            task.cancel()

        virtual_time.run(all_of_it)

    return run


async def until(ready):
    while not ready():
        await asyncio.sleep(0.1)


def test_plan_waits_until_its_pod_has_all_services(play):
    async def scene(made, api):
        one = Connection("a")
        made.begin(one)
        waiting = asyncio.create_task(made.greeted(one))
        await asyncio.sleep(FIRST_S - 1)
        assert not waiting.done()
        api.open.set()
        await waiting
        assert one.got == [{"type": "services", "whole": True, "set": [["10.96.0.9", "tcp", 80, 0, []]], "drop": []}]

    play(scene)


def test_plan_does_not_wait_for_ever(play):
    async def scene(made, api):
        one = Connection("a")
        made.begin(one)
        began_s = asyncio.get_running_loop().time()
        await made.greeted(one)
        assert (one.got, asyncio.get_running_loop().time() - began_s) == ([], FIRST_S)

    play(scene)


def test_only_changes_are_sent_later(play):
    async def scene(made, api):
        api.open.set()
        first, later = Connection("a"), Connection("b")
        made.begin(first)
        await made.greeted(first)
        api.events[SERVICES].put_nowait(("ADDED", service("other", "10.96.0.10")))
        api.events[SLICES].put_nowait(("ADDED", slice_of("web", endpoint("10.64.0.3"))))
        await until(lambda: sum(len(message["set"]) for message in first.got) == 3)
        made.begin(later)
        await made.greeted(later)
        assert [len(message["set"]) for message in later.got] == [2]
        api.events[SERVICES].put_nowait(("DELETED", service()))
        await until(lambda: later.got[-1]["drop"])
        assert (later.got[-1]["set"], later.got[-1]["drop"]) == ([], [WEB])
        assert [message["whole"] for message in later.got] == [True, False]

    play(scene)


def test_change_outside_the_table_is_not_sent(play):
    async def scene(made, api):
        api.open.set()
        one = Connection("a")
        made.begin(one)
        await made.greeted(one)
        api.events[SERVICES].put_nowait(("MODIFIED", service(selector={"app": "x"})))
        api.events[SERVICES].put_nowait(("ADDED", service("other", "10.96.0.10")))
        await until(lambda: any(row[0] == "10.96.0.10" for message in one.got for row in message["set"]))
        assert [row[0] for message in one.got for row in message["set"]] == ["10.96.0.9", "10.96.0.10"]

    play(scene)


def test_pod_that_is_stuck_delays_no_other(play):
    async def scene(made, api):
        api.open.set()
        stuck, other = Connection("a", stuck=True), Connection("b")
        made.begin(stuck)
        made.begin(other)
        await made.greeted(other)
        assert len(other.got) == 1

    play(scene)


def test_supervisor_that_reconnects_gets_the_table_and_its_old_connection_nothing(play):
    async def scene(made, api):
        api.open.set()
        old, new = Connection("a"), Connection("a")
        for one in (old, new):
            made.begin(one)
            await made.greeted(one)
        old.is_closed = True
        api.events[SERVICES].put_nowait(("DELETED", service()))
        await until(lambda: len(new.got) == 2)
        assert len(old.got) == 1
        made.begin(Connection("b"))
        assert {*made._followers} == {"a", "b"}
        new.is_closed = True
        made.begin(Connection("b"))
        assert {*made._followers} == {"b"}

    play(scene)


def test_other_drivers_send_nothing_and_wait_for_nothing(play):
    async def scene(made, api):
        one = Connection("a")
        made.begin(one)
        await made.greeted(one)
        assert (one.got, made._followers) == ([], {})

    play(scene, enabled=False)
