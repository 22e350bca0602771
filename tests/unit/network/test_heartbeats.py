"""A silent node's leases end once, late, and never because etcd itself was silent."""

import pytest

from isthmus.model.network import Driver, Job, Lease, State
from isthmus.network.bounds import LOGIN_FIRST
from isthmus.network.state.heartbeats import Heard, Pulse, Silence, Times, tied, ties

ALL = frozenset({"l1", "l2"})
MISSING_S = 50


def job(number, *nodes):
    return Job(number, 2001, "j", Driver.PRIVATE, nodes, ())


STATE = State(
    jobs={7: job(7, "c1", "c2"), LOGIN_FIRST: job(LOGIN_FIRST, "l1"), LOGIN_FIRST + 1: job(LOGIN_FIRST + 1, "l2")},
    leases={(2001, "l1"): Lease(2001, "l1", 0), (2002, "c1"): Lease(2002, "c1", 0)},
)


def rounds(*alive, known=ALL, tied_to=("l1", "l2")):
    """Judge answers MISSING_S apart; None is no answer."""
    silence, due = Silence(MISSING_S), []
    for number, nodes in enumerate(alive):
        if nodes is None:
            silence.forget()
        else:
            due.append(silence.judge(tied_to, Heard(frozenset(nodes), known), number * MISSING_S))
    return due


def test_node_that_is_missing_for_long_is_due():
    assert rounds({"l1", "l2"}, {"l2"}, {"l2"}) == [(), (), ("l1",)]


@pytest.mark.parametrize(
    "alive",
    [[{"l2"}, {"l1", "l2"}, {"l2"}], [{"l2"}, None, {"l2"}], [{"l2"}]],
    ids=["heard between", "etcd was away", "missing once"],
)
def test_node_that_may_live_is_not_due(alive):
    assert not any(rounds(*alive))


def test_node_that_was_never_heard_of_is_not_judged():
    assert rounds(set(), set(), known=frozenset({"l2"})) == [(), ("l2",)]


def test_node_without_leases_is_not_judged():
    assert rounds(set(), set(), tied_to=["l2"]) == [(), ("l2",)]


def test_leases_and_login_pods_are_a_nodes_own_and_jobs_are_not():
    assert tied(STATE) == {"l1", "l2", "c1"}
    assert ties(STATE, "l1") == ((LOGIN_FIRST,), (2001,))
    assert ties(STATE, "c1") == ((), (2002,))
    assert ties(STATE, "c2") == ((), ())


@pytest.mark.parametrize("ttl_s", [60, 61, 21600])
def test_node_has_the_whole_time_and_is_heard_of_often(ttl_s):
    times = Times(ttl_s)
    assert times.etcd_s + times.missing_s == ttl_s
    assert times.beat_s <= times.etcd_s / 3
    # After an outage of etcd each node is heard of again before it is due, also when a call fails.
    assert times.retry_s + times.look_s < times.missing_s


class Answering:
    """The keys, where etcd's leases go on or do not."""

    def __init__(self, *answers):
        self.answers, self.begun = list(answers), []

    def begin(self, node, ttl_s):
        self.begun.append((node, ttl_s))
        return str(len(self.begun))

    def goes_on(self, lease):
        assert lease == str(len(self.begun))
        return self.answers.pop(0)


def test_node_writes_its_keys_again_when_they_have_expired():
    heartbeats = Answering(True, False, True)
    pulse = Pulse(heartbeats, "l1", Times(60))
    for _ in range(4):
        pulse.beat()
    assert heartbeats.begun == [("l1", 30), ("l1", 30)]
    assert heartbeats.answers == []
