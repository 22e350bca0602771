"""Services brought to supervisors: all of them first, then what changed; nobody waits for another."""

import asyncio

import pytest

from isthmus.clients.kube.api import Event
from isthmus.kubelet.objects import services
from isthmus.kubelet.objects.services import SERVICES, SLICES, Services
from tests.support.pods.services import endpoint, service, slice_of

WEB = "10.96.0.9 tcp 80"


class Api:
    """Services and EndpointSlices: lists, told when they may be, then events."""

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
    """A supervisor: what it has been told; one that is stuck takes nothing."""

    def __init__(self, uid, *, stuck=False):
        self.uid, self.is_closed, self.got, self.stuck = uid, False, [], stuck

    async def send(self, message):
        if self.stuck:
            await asyncio.Event().wait()
        self.got.append(message)


@pytest.fixture
def play(monkeypatch):
    """Play a scene with an API server that does not answer yet."""
    monkeypatch.setattr(services, "GATHER_S", 0.001)
    monkeypatch.setattr(services, "FIRST_S", 20)

    def run(scene, *, told=True):
        async def all_of_it():
            api = Api()
            made = Services(api, None, told=told)
            task = asyncio.create_task(made.run())
            async with asyncio.timeout(30):
                await scene(made, api)
            task.cancel()

        asyncio.run(all_of_it())

    return run


async def until(ready):
    while not ready():
        await asyncio.sleep(0.001)


def test_plan_waits_until_its_pod_has_all_services(play):
    async def scene(made, api):
        one = Connection("a")
        made.begin(one)
        waiting = asyncio.create_task(made.greeted(one))
        await asyncio.sleep(0.01)
        assert not waiting.done()
        api.open.set()
        await waiting
        assert one.got == [{"type": "services", "whole": True, "set": [["10.96.0.9", "tcp", 80, 0, []]], "drop": []}]

    play(scene)


def test_plan_does_not_wait_for_ever(play, monkeypatch):
    async def scene(made, api):
        monkeypatch.setattr(services, "FIRST_S", 0.001)
        one = Connection("a")
        made.begin(one)
        await made.greeted(one)
        assert one.got == []

    play(scene)


def test_only_what_changed_is_told_later(play):
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


def test_change_that_is_none_of_the_tables_is_not_told(play):
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


def test_supervisor_that_comes_again_is_told_all_and_the_old_one_nothing(play):
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


def test_other_drivers_tell_nothing_and_wait_for_nothing(play):
    async def scene(made, api):
        one = Connection("a")
        made.begin(one)
        await made.greeted(one)
        assert (one.got, made._followers) == ([], {})

    play(scene, told=False)
