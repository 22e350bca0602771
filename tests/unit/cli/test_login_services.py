"""The Services of a user's cluster for the login pod: what is brought to the daemon, when, and to which pod."""

from itertools import count

import pytest

from isthmus.cli import login_services
from isthmus.cli.login_services import GATHER_S, LOOK_S, Follower, Surroundings, pod, put, read_apart, turns
from isthmus.clients.kube.errors import GoneError, UnreachableError
from isthmus.clients.kube.kubeconfig import KubeconfigError
from isthmus.clients.kube.watches import TIMEOUT_S, WATCH_S
from isthmus.kubelet.objects.servicetable import SERVICES, SLICES
from isthmus.network.api.messages import ErrorCode, JobServices, List, Status
from isthmus.network.api.protocol import RequestError
from isthmus.network.bounds import LOGIN_FIRST
from tests.support.pods.services import answering, endpoint, place, service, slice_of

EMPTY = {place(): answering()}
SERVED = {place(): answering("10.64.0.3:8080")}
SLICE = slice_of("web", endpoint("10.64.0.3"))


class Api:
    """Services and EndpointSlices; what the next requests and watches say."""

    def __init__(self):
        self.items = {SERVICES: [service()], SLICES: []}
        self.events = {path: [] for path in self.items}
        self.errors, self.connections, self.asked = [], [], []
        self.versions = count(1)

    def connect(self):
        if self.errors:
            raise self.errors.pop(0)
        self.connections.append(Connection(self))
        return self.connections[-1]

    def say(self, path, kind, one):
        self.events[path].append((kind, one))

    @property
    def open(self):
        return [each for each in self.connections if not each.is_closed]


class Connection:
    def __init__(self, api):
        self.api, self.path, self.is_closed = api, "", False
        self.is_over, self.keeps = False, True

    def get(self, path, query):
        assert query == {"limit": "0"}
        self.api.asked.append(("list", path))
        return {"items": self.api.items[path], "metadata": {"resourceVersion": "1"}}

    def watch(self, path, version):
        self.api.asked.append(("watch", path, version))
        self.path, self.is_over = path, False

    def events(self):
        assert not self.is_closed
        said, self.api.events[self.path] = self.api.events[self.path], []
        for kind, one in said:
            if isinstance(kind, Exception):
                raise kind
            one["metadata"]["resourceVersion"] = str(1 + next(self.api.versions))
        return said

    def close(self):
        self.is_closed = True


class Clock(Surroundings):
    """Time passes where somebody waits for it; what is to happen then does."""

    def __init__(self):
        self.at_s, self.said = 0.0, []
        super().__init__(self.said.append)

    def now_s(self):
        return self.at_s

    def wait(self, timeout_s, connections=()):
        self.at_s += min(timeout_s, 0.1) if timeout_s else 0.001


class Daemon:
    """What it was given; it refuses so many times."""

    def __init__(self, refusals=0):
        self.tables, self.refusals = [], refusals

    def put(self, table):
        if self.refusals:
            self.refusals -= 1
            raise RequestError(ErrorCode.NOT_FOUND, "no pod")
        self.tables.append(table)


class Scene:
    def __init__(self, refusals=0):
        self.api, self.clock, self.daemon = Api(), Clock(), Daemon(refusals)
        self.follower = Follower(self.api.connect, self.daemon.put, surroundings=self.clock)

    def after(self, seconds):
        until_s = self.clock.at_s + seconds
        while self.clock.at_s < until_s:
            self.follower.turn(until_s)
        return self.daemon.tables


@pytest.fixture
def scene():
    return Scene()


def test_table_is_brought_when_all_is_known_and_when_it_changes(scene):
    assert scene.after(2 * GATHER_S) == [EMPTY]
    scene.api.say(SLICES, "ADDED", SLICE)
    assert scene.after(2 * GATHER_S) == [EMPTY, SERVED]
    # What is no change of the table asks nobody.
    scene.api.say(SLICES, "MODIFIED", SLICE)
    scene.after(2 * GATHER_S)
    scene.api.say(SLICES, "BOOKMARK", {"metadata": {}})
    assert scene.after(2 * GATHER_S) == [EMPTY, SERVED]
    scene.api.say(SERVICES, "DELETED", service())
    assert scene.after(2 * GATHER_S) == [EMPTY, SERVED, {}]


def test_nothing_is_brought_before_both_collections_are_known(scene):
    real = scene.api.connect
    scene.follower._reflected[SLICES]._connect = lambda: (_ for _ in ()).throw(UnreachableError("no"))
    assert scene.after(10) == []
    scene.follower._reflected[SLICES]._connect = real
    assert scene.after(20) == [EMPTY]


def test_many_changes_are_few_requests(scene):
    scene.after(GATHER_S)
    for number in range(100):
        scene.api.say(SLICES, "ADDED", slice_of("web", endpoint(f"10.64.0.{number}")))
        scene.after(0.1)
    tables = scene.after(2 * GATHER_S)
    assert 10 <= len(tables) <= 13
    assert tables[-1] == {place(): answering("10.64.0.99:8080")}


def test_daemon_that_refuses_is_asked_again():
    scene = Scene(refusals=3)
    assert scene.after(60) == [EMPTY]
    assert scene.daemon.refusals == 0
    assert [each for each in scene.clock.said if "has not taken Services: no pod" in each]


def test_server_that_is_away_is_asked_again_and_the_state_stays(scene):
    scene.after(2)
    scene.api.errors = [UnreachableError("away")] * 4
    for path in (SERVICES, SLICES):
        scene.api.say(path, UnreachableError("broke"), None)
    scene.after(30)
    assert len(scene.api.open) == 2
    assert scene.api.asked.count(("list", SERVICES)) == 1, "the watch goes on where it was"
    assert scene.daemon.tables == [EMPTY]
    assert len(scene.clock.said) == 6


def test_version_that_is_too_old_has_all_listed_again(scene):
    scene.after(2)
    scene.api.items[SLICES] = [SLICE]
    scene.api.say(SLICES, GoneError("too old", 410), None)
    assert scene.after(5) == [EMPTY, SERVED]


def test_watch_goes_on_by_the_same_connection_when_its_time_is_over(scene):
    scene.after(100)
    for each in scene.api.connections:
        each.is_over = True
    scene.after(2)
    assert len(scene.api.connections) == 2
    assert scene.api.asked.count(("watch", SERVICES, "1")) == 2


def test_watch_that_the_server_ends_at_once_is_not_asked_for_at_once(scene):
    scene.after(1)
    for _ in range(100):
        for each in scene.api.open:
            each.is_over = True
        scene.after(0.1)
    assert len(scene.api.asked) < 30


def test_silence_means_a_dead_connection(scene):
    scene.after(WATCH_S + TIMEOUT_S + 5)
    assert len(scene.api.connections) == 4
    assert len(scene.api.open) == 2


def test_of_an_object_is_kept_what_the_table_is_made_of(scene):
    whole = slice_of("web", endpoint("10.64.0.3"))
    whole["metadata"] |= {"managedFields": ["long"], "annotations": {"a": "b"}}
    whole["metadata"]["labels"]["other"] = "label"
    scene.api.items[SLICES] = [whole]
    assert scene.after(2) == [SERVED]
    (kept,) = scene.follower._reflected[SLICES].objects.values()
    assert set(kept["metadata"]) == {"uid", "name", "namespace", "labels"}
    assert len(kept["metadata"]["labels"]) == 1


class Clusters:
    """Clusters of one home, one after another."""

    def __init__(self, folder):
        self.file, self.apis, self.daemon, self.clock = folder / "kubeconfig", [], Daemon(), Clock()
        self.going = turns(self.file, self.daemon.put, self.connecting, self.clock)

    def connecting(self, path):
        if not path.exists():
            raise KubeconfigError(path, "it is not there")
        self.apis.append(Api())
        return "https://10.64.0.2:6443", self.apis[-1].connect

    def write(self, text):
        """Write the next kubeconfig, as a whole."""
        other = self.file.with_name(text)
        other.write_text(text)
        other.replace(self.file)

    def after(self, seconds):
        until_s = self.clock.at_s + seconds
        while self.clock.at_s < until_s:
            next(self.going)
        return [len(api.open) for api in self.apis]


def test_cluster_that_is_made_again_is_followed_with_its_new_keys(tmp_path):
    clusters = Clusters(tmp_path)
    assert clusters.after(5) == []
    assert "is not there" in clusters.clock.said[0]
    clusters.write("one")
    assert clusters.after(100) == [2]
    clusters.write("other")
    assert clusters.after(100) == [0, 2]
    assert clusters.daemon.tables == [EMPTY, EMPTY]
    clusters.file.unlink()
    assert clusters.after(2 * LOOK_S) == [0, 0]


def test_node_ports_are_at_the_servers_address(tmp_path):
    clusters = Clusters(tmp_path)
    clusters.write("one")
    clusters.after(5)
    clusters.apis[0].say(SERVICES, "MODIFIED", service(type="NodePort", ports=[{"port": 80, "nodePort": 30080}]))
    clusters.after(2 * GATHER_S)
    assert clusters.daemon.tables[-1] == {**EMPTY, place("10.64.0.2", 30080): answering()}


@pytest.mark.parametrize(
    ("text", "why"),
    [("{", "cannot be used"), ("server: x", "it has no 'current-context'"), (None, "No such file")],
)
def test_kubeconfig_that_cannot_be_used_is_refused_apart(tmp_path, text, why):
    file = tmp_path / "kubeconfig"
    if text is not None:
        file.write_text(text)
    with pytest.raises(KubeconfigError, match=why):
        read_apart(file)


def test_reader_that_ends_early_is_a_failure(tmp_path, monkeypatch):
    monkeypatch.setattr(login_services, "_parts", lambda file: [][1])
    with pytest.raises(KubeconfigError, match="its reader ended"):
        read_apart(tmp_path / "kubeconfig")


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
