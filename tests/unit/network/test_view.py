"""What a node knows, and what it no longer follows."""

import threading
from dataclasses import replace
from ipaddress import IPv4Address

from isthmus.model.network import Driver, Job, State
from isthmus.network.state.keys import JobKey
from isthmus.network.state.snapshot import Snapshot
from isthmus.network.state.view import View


def snapshot(*jobs, revision=1):
    address = IPv4Address("10.64.0.0") + revision
    known = {job: Job(job, 1001, "run", Driver.PRIVATE, ("c1",), (address,)) for job in jobs}
    return Snapshot(State(jobs=known, revision=revision), None, {JobKey(job): revision for job in jobs})


def jobs(view):
    return sorted(view.state().jobs)


def test_released_job_is_followed_no_longer():
    view = View(snapshot(7, 8))
    view.release(7)
    assert jobs(view) == [8]
    assert sorted(view.snapshot.state.jobs) == [7, 8]


def test_job_written_again_is_followed_again():
    view = View(snapshot(7))
    view.release(7)
    view.set(snapshot(7, revision=1))
    assert jobs(view) == []
    view.set(snapshot(7, revision=2))
    assert jobs(view) == [7]


def test_released_job_that_gets_its_name_is_not_followed_again():
    view = View(snapshot(7))
    view.release(7)
    named = replace(view.snapshot.state.jobs[7], name="train")
    view.set(Snapshot(State(jobs={7: named}, revision=2), None, {JobKey(7): 2}))
    assert jobs(view) == []


def test_job_requeued_on_the_same_nodes_is_followed_again():
    view = View(snapshot(7))
    view.release(7)
    view.keep(7)
    assert jobs(view) == [7]


def test_release_of_an_unknown_job_is_nothing():
    view = View(snapshot())
    view.release(7)
    view.set(snapshot(7))
    assert jobs(view) == [7]


def test_wait_ends_when_the_state_is_so():
    view = View(snapshot())
    threading.Timer(0.05, lambda: view.set(snapshot(7))).start()
    assert view.wait(lambda state: 7 in state.jobs, 5)


def test_wait_ends_in_time_when_it_is_not():
    assert not View(snapshot()).wait(lambda state: 7 in state.jobs, 0.01)


def test_turn_is_another_after_each_change():
    view = View(snapshot())
    first = view.next_turn(-1, 0)
    assert view.next_turn(first, 0.01) == first
    view.set(snapshot(7))
    second = view.next_turn(first, 0)
    view.release(7)
    assert len({first, second, view.next_turn(second, 0)}) == 3
