"""A job's network that takes longer than its prolog waits; over a real etcd, with a kernel that is not."""

import threading
import time

import pytest

from isthmus.network.api import operations
from isthmus.network.api.messages import JobGet, JobRelease
from tests.support.networks.daemons import code, prepare, two_hosts
from tests.support.wait import wait


@pytest.fixture
def hosts(cluster, tmp_path):
    with two_hosts(cluster, tmp_path) as made:
        yield made


@pytest.fixture
def slow(hosts):
    """A host whose kernel makes a pod when it is let."""
    let = threading.Event()
    quick = hosts[0].kernel.add_pod

    def add_pod(pod):
        assert let.wait(60)
        quick(pod)

    hosts[0].kernel.add_pod = add_pod
    yield hosts[0], let
    let.set()


def state(host):
    return host.ask(JobGet(7)).get("state")


def test_slow_preparation_goes_on_while_the_prolog_does(slow):
    host, let = slow
    assert host.ask(prepare(answer_s=0.05))["state"] == "preparing"
    assert state(host) == "preparing"
    let.set()
    wait(lambda: state(host), lambda reported: reported == "ready", interval_s=0.01)


def test_preparation_is_known_before_its_thread_runs(hosts, monkeypatch):
    class Late(threading.Thread):
        def start(self):
            threading.Timer(0.3, super().start).start()

    monkeypatch.setattr(operations, "Thread", Late)
    assert hosts[0].ask(prepare(answer_s=0.01))["state"] == "preparing"
    assert state(hosts[0]) == "preparing"
    wait(lambda: state(hosts[0]), lambda reported: reported == "ready", interval_s=0.01)


def test_job_that_ends_before_its_network_is_made_leaves_nothing(slow):
    host, let = slow
    host.ask(prepare(answer_s=0.05))
    host.ask(JobRelease(7))
    let.set()
    wait(lambda: 7 in host.kernel.pods, interval_s=0.01)
    wait(lambda: host.view.state().jobs, lambda jobs: 7 not in jobs, interval_s=0.01)


def test_job_requeued_before_its_network_was_made_gets_one(slow):
    host, let = slow
    host.ask(prepare(answer_s=0.05))
    host.ask(JobRelease(7))
    again = threading.Thread(target=host.ask, args=(prepare(),))
    again.start()
    let.set()
    again.join()
    assert state(host) == "ready"


def test_next_stay_begins_when_the_one_before_is_undone(slow, monkeypatch):
    host, let = slow
    release, released = host.view.release, threading.Event()

    def late(job):
        time.sleep(0.3)
        release(job)
        released.set()

    host.ask(prepare(answer_s=0.05))
    host.ask(JobRelease(7))
    host.ask(prepare(answer_s=0.05))
    monkeypatch.setattr(host.view, "release", late)
    let.set()
    wait(lambda: state(host), lambda reported: reported == "ready", interval_s=0.01)
    assert released.wait(10)
    # In etcd itself: the host's view of it may be a moment older.
    assert 7 in host.store.load().state.jobs


def test_prolog_does_not_wait_for_the_stay_before(slow):
    host, let = slow
    host.ask(prepare(answer_s=0.05))
    host.ask(JobRelease(7))
    assert host.ask(prepare(answer_s=0.05))["state"] == "preparing"
    let.set()
    wait(lambda: state(host), lambda reported: reported == "ready", interval_s=0.01)


def test_quick_failure_is_reported_to_the_prolog_and_a_slow_one_to_the_step(hosts):
    assert code(hosts[0].ask(prepare(nodes=("c9",), answer_s=30))) == "invalid"
    hosts[0].kernel.add_pod = _fail_late
    assert hosts[0].ask(prepare(answer_s=0.05))["state"] == "preparing"
    reported = wait(lambda: hosts[0].ask(JobGet(7)), lambda reported: reported["state"] == "failed", interval_s=0.01)
    assert "out of luck" in reported["error"]


def _fail_late(pod):
    time.sleep(0.3)
    raise OSError("out of luck")
