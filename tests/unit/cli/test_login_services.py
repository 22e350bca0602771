"""The Services of a user's cluster for the login pod: what is brought to the daemon, when, and to which pod."""

import asyncio

import pytest

from isthmus.cli import login_services
from isthmus.cli.login_services import GATHER_S, Follower, pod, put, run
from isthmus.clients.kube.api import Event, KubeError
from isthmus.kubelet.objects.servicetable import SERVICES, SLICES
from isthmus.network.api.messages import ErrorCode, JobServices, List, Status
from isthmus.network.api.protocol import RequestError
from isthmus.network.bounds import LOGIN_FIRST
from tests.support import virtual_time
from tests.support.pods.services import answering, endpoint, place, service, slice_of

EMPTY = {place(): answering()}
SERVED = {place(): answering("10.64.0.3:8080")}


class Api:
    """Services and EndpointSlices; the latter are listed once `open` is set."""

    def __init__(self):
        self.open, self.server = asyncio.Event(), "https://10.64.0.2:6443"
        self.items = {SERVICES: [service()], SLICES: []}
        self.events = {path: asyncio.Queue() for path in self.items}
        self.is_closed = False

    async def get(self, path, query):
        if path == SLICES:
            await self.open.wait()
        items = self.items[path]
        return {"apiVersion": "v1", "kind": "XList", "items": items, "metadata": {"resourceVersion": "1"}}

    async def watch(self, path, version, query):
        while True:
            kind, one = await self.events[path].get()
            one["metadata"]["resourceVersion"] = "2"
            yield Event(kind, one)

    async def close(self):
        self.is_closed = True


class Daemon:
    """What it was given; it refuses as often as it is told to."""

    def __init__(self, refusals=0):
        self.tables, self.refusals = [], refusals

    def put(self, table):
        if self.refusals:
            self.refusals -= 1
            raise RequestError(ErrorCode.NOT_FOUND, "no pod")
        self.tables.append(table)


def play(scene, daemon, monkeypatch):
    async def all_of_it(clock):
        monkeypatch.setattr(asyncio, "to_thread", in_place)
        api = Api()
        task = asyncio.create_task(Follower(api, daemon.put).run())
        await scene(api)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    virtual_time.run(all_of_it)


def test_table_is_brought_when_all_is_known_and_when_it_changes(monkeypatch):
    daemon = Daemon()

    async def scene(api):
        await asyncio.sleep(10)
        assert daemon.tables == []
        api.open.set()
        await asyncio.sleep(2 * GATHER_S)
        assert daemon.tables == [EMPTY]
        api.events[SLICES].put_nowait(("ADDED", slice_of("web", endpoint("10.64.0.3"))))
        await asyncio.sleep(2 * GATHER_S)
        assert daemon.tables == [EMPTY, SERVED]
        # What is no change of the table asks nobody.
        api.events[SLICES].put_nowait(("MODIFIED", slice_of("web", endpoint("10.64.0.3"))))
        await asyncio.sleep(2 * GATHER_S)
        api.events[SERVICES].put_nowait(("DELETED", service()))
        await asyncio.sleep(2 * GATHER_S)
        assert daemon.tables == [EMPTY, SERVED, {}]

    play(scene, daemon, monkeypatch)


def test_many_changes_are_few_requests(monkeypatch):
    daemon = Daemon()

    async def scene(api):
        api.open.set()
        for number in range(100):
            api.events[SLICES].put_nowait(("ADDED", slice_of("web", endpoint(f"10.64.0.{number}"))))
            await asyncio.sleep(0.1)
        await asyncio.sleep(2 * GATHER_S)
        assert 10 <= len(daemon.tables) <= 13
        assert daemon.tables[-1] == {place(): answering("10.64.0.99:8080")}

    play(scene, daemon, monkeypatch)


def test_daemon_that_refuses_is_asked_again(monkeypatch, caplog):
    daemon = Daemon(refusals=3)

    async def scene(api):
        api.open.set()
        await asyncio.sleep(60)
        assert (daemon.tables, daemon.refusals) == ([EMPTY], 0)

    play(scene, daemon, monkeypatch)
    assert "has not taken Services: no pod" in caplog.text


async def in_place(call, *arguments):
    return call(*arguments)


@pytest.fixture
def apis(monkeypatch):
    """The API servers that were connected to, each while there was a kubeconfig."""
    made = []

    async def connect(path):
        if not path.exists():
            raise KubeError(f"{path} is not there")
        made.append(Api())
        made[-1].open.set()
        return made[-1]

    monkeypatch.setattr(login_services.Kube, "connect", connect)
    return made


def test_cluster_that_is_made_again_is_followed_with_its_new_keys(apis, monkeypatch, tmp_path):
    file, daemon = tmp_path / "kubeconfig", Daemon()

    async def scene(clock):
        monkeypatch.setattr(asyncio, "to_thread", in_place)
        task = asyncio.create_task(run(file, daemon.put))
        await asyncio.sleep(5)
        assert apis == []
        for number, text in enumerate(("one", "other"), 1):
            file.write_text(text)
            await asyncio.sleep(100)
            assert [api.is_closed for api in apis] == [True] * (number - 1) + [False]
        assert daemon.tables == [EMPTY, EMPTY]
        ports = [{"port": 80, "nodePort": 30080}]
        apis[1].events[SERVICES].put_nowait(("MODIFIED", service(type="NodePort", ports=ports)))
        await asyncio.sleep(2 * GATHER_S)
        assert daemon.tables[-1] == {**EMPTY, place("10.64.0.2", 30080): answering()}
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    virtual_time.run(scene)


@pytest.fixture
def asked():
    """A daemon's answers, and what was asked for."""
    requests = []

    def ask(request):
        requests.append(request)
        jobs = [
            {"id": 7, "nodes": ["login"]},
            {"id": LOGIN_FIRST + 1, "nodes": ["other"]},
            {"id": LOGIN_FIRST + 2, "nodes": ["login"]},
        ]
        return {"node": "login"} if request == Status() else {"jobs": jobs} if request == List() else {}

    ask.requests = requests
    return ask


def test_pod_is_the_users_own_on_this_host(asked):
    put(SERVED, asked)
    assert asked.requests[-1] == JobServices(LOGIN_FIRST + 2, SERVED)


def test_user_without_a_pod_here_brings_nothing(asked):
    with pytest.raises(OSError, match="no login pod of this user on elsewhere"):
        pod(lambda request: {"node": "elsewhere"} if request == Status() else asked(request))
