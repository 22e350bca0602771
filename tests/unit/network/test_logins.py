"""Login pods: ids, ports, rules and folders."""

import os
import subprocess
from dataclasses import replace
from ipaddress import IPv4Address, IPv4Network

import pytest

from isthmus.model.network import Driver, Job, Node, State
from isthmus.model.node_network import NodePlan
from isthmus.network.bounds import LOGIN_FIRST
from isthmus.network.logins.numbers import SLOTS, Logins, free, pod_of
from isthmus.network.logins.place import Held, Place
from isthmus.network.node.rules import Settings, base, change, elements

LOGINS = Logins(20000, 20999, 250, (22, 443), 64030, 5, 64, is_here=True)
SETTINGS = Settings(IPv4Network("10.128.0.0/12"), logins=LOGINS)
NODES = {"login": Node("login", IPv4Address("192.0.2.1")), "c1": Node("c1", IPv4Address("192.0.2.2"))}


def pod(number, uid=1000, node="login"):
    return Job(LOGIN_FIRST + number, uid, "login", Driver.PRIVATE, (node,), (IPv4Address("10.128.0.9") + number,))


def state(*jobs):
    return State(NODES, jobs={job.id: job for job in jobs})


@pytest.mark.parametrize(
    ("jobs", "found"),
    [
        ((), 0),
        ((pod(0),), 1),
        ((pod(1), pod(SLOTS)), 2),
        # Another host's pod has the id, so this one's first is the next of the same ports.
        ((pod(0, node="c1"),), SLOTS),
        ((Job(7, 1000, "run", Driver.PRIVATE, ("login",), (IPv4Address("10.128.0.9"),)),), 0),
        (tuple(pod(number) for number in range(4)), None),
    ],
)
def test_id_is_free_here_and_everywhere(jobs, found):
    assert free(state(*jobs), "login", LOGINS) == (None if found is None else LOGIN_FIRST + found)


def test_ports_of_pods_of_a_host_are_apart():
    ranges = [LOGINS.ports(LOGIN_FIRST + number) for number in (0, 1, 3, SLOTS)]
    assert ranges == [(20000, 20249), (20250, 20499), (20750, 20999), (20000, 20249)]
    assert LOGINS.slots == 4


def test_pod_is_its_users_on_its_node():
    known = state(pod(0), pod(1, uid=1001), pod(2, node="c1"))
    assert pod_of(known, 1000, "login") == pod(0)
    assert pod_of(known, 1002, "login") is None


def test_elements_lead_to_pods_here_and_bar_others_everywhere():
    known = state(pod(1), pod(2, uid=1001, node="c1"))
    found = elements(NodePlan(), known, "login", SETTINGS)
    assert found["login_pods"] == {"10.128.0.10"}
    assert found["login_ways"] == {"20250-20499 : 10.128.0.10"}
    assert found["login_ports"] == {"192.0.2.1 . 20250-20499", "192.0.2.2 . 20500-20749"}
    assert found["login_owners"] == {"192.0.2.1 . 20250-20499 . 1000", "192.0.2.2 . 20500-20749 . 1001"}


def test_pod_of_a_node_that_left_is_passed_over():
    found = elements(NodePlan(), replace(state(pod(0)), nodes={}), "login", SETTINGS)
    assert not found["login_ports"]


def test_rules_are_those_of_before_without_login_pods():
    text = base(replace(SETTINGS, logins=None))
    assert "login" not in text
    assert "dnat" not in text


def test_rules_declare_every_set():
    text = base(SETTINGS)
    assert "map login_ways {" in text
    for name in ("login_pods", "login_ports", "login_owners"):
        assert f"set {name} {{" in text
    assert "ip saddr @login_pods tcp dport { 22, 443 } accept" in text


def test_ways_are_elements_of_a_map():
    want = {"login_ways": frozenset({"20000-20249 : 10.128.0.9"})}
    assert change({}, want) == "add element inet isthmus login_ways { 20000-20249 : 10.128.0.9 }\n"


@pytest.fixture
def place(tmp_path):
    """A pod's folder, whose network is this process's."""
    made = Place(tmp_path / "1000")
    made.make(LOGIN_FIRST, "/proc/self/ns/net", "/etc/resolv.conf", (20000, 20249))
    return made


@pytest.fixture
def process():
    with subprocess.Popen(["sleep", "60"]) as started:
        yield started
        started.kill()


def test_folder_is_roots_alone_and_says_what_the_pod_is(place):
    assert place.folder.stat().st_mode & 0o777 == 0o700
    assert (place.folder / "ports").read_text() == "20000 20249\n"
    assert place.job() == LOGIN_FIRST
    assert Place(place.folder.parent / "none").job() == 0


def test_first_process_is_found_while_it_lives(place, process):
    assert place.init() is None
    (place.folder / "init").write_text(f"{process.pid}\n")
    held = place.init()
    assert held.pid == process.pid
    assert held.lives
    process.kill()
    process.wait()
    assert not held.lives
    assert place.init() is None


def test_process_of_another_network_is_not_the_first(place, process):
    (place.folder / "init").write_text(f"{process.pid}\n")
    (place.folder / "netns").unlink()
    (place.folder / "netns").symlink_to("/dev/null")
    assert place.init() is None


def test_sessions_are_found_by_the_next_daemon(place, process):
    assert place.remember(process.pid).lives
    assert set(place.sessions()) == {process.pid}
    # A process that got the number later began later.
    (place.folder / "sessions" / str(process.pid)).write_text("1")
    assert place.sessions() == {}
    place.forget(process.pid)
    place.forget(process.pid)
    assert not list((place.folder / "sessions").iterdir())


def test_process_that_ended_is_no_session(place):
    with subprocess.Popen(["true"]) as ended:
        ended.wait()
    with pytest.raises(OSError, match=r"No such process"):
        place.remember(ended.pid)
    assert not place.sessions()


def test_folder_of_an_earlier_pod_is_gone(place):
    (place.folder / "init").write_text("1\n")
    place.make(LOGIN_FIRST + 1, "/proc/self/ns/net", "/etc/resolv.conf", (20250, 20499))
    assert not (place.folder / "init").exists()
    place.remove()
    place.remove()
    assert not place.folder.exists()


def test_this_process_lives():
    held = Held(os.getpid())
    assert held.lives
    held.close()
