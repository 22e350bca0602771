"""A pass over Flannel's pods: made, reported, mended and taken away; failures stay with what failed."""

from dataclasses import replace
from ipaddress import IPv4Address

import pytest

from isthmus.model.network import Attachment, Driver, Job, Node, State, User
from isthmus.network.drivers.flannel.converge import CHECK_S, FlannelConverger
from isthmus.network.state.store import EndedError
from tests.support.fakes.kernel import FakeAttachments

ALICE, BOB = 1001, 1002
NODES = {name: Node(name, IPv4Address(f"10.0.0.{number}")) for number, name in enumerate(("c1", "c2"), 1)}


def state(*jobs, uid=ALICE, driver=Driver.FLANNEL, reported=()):
    made = {job: Job(job, uid, "run", driver, ("c1", "c2"), ()) for job in jobs}
    return State(
        NODES, {uid: User(uid, "alice", 4096)}, made, attachments={(each.job, each.node): each for each in reported}
    )


class Bed:
    """A converger with its surroundings."""

    def __init__(self):
        self.pods, self.reported, self.now_s = FakeAttachments(), [], 0.0
        self.converger = FlannelConverger("c1", self.pods, self.reported.append, lambda: self.now_s)

    def run(self, wanted):
        """Make a pass; return its outcome and what was called."""
        self.pods.calls.clear()
        return self.converger.run(lambda: wanted), list(self.pods.calls)


@pytest.fixture
def bed():
    return Bed()


def test_pod_is_made_and_reported(bed):
    outcome, calls = bed.run(state(7))
    assert calls == ["add 7"]
    assert outcome.pods == bed.pods.pods
    assert bed.reported == [Attachment(7, "c1", outcome.pods[7].address)]


def test_pass_without_change_calls_no_plugin_and_reports_nothing(bed):
    bed.run(state(7))
    assert bed.run(state(7, reported=bed.reported))[1] == []
    assert len(bed.reported) == 1


def test_address_that_etcd_lost_is_reported_again(bed):
    bed.run(state(7))
    wrong = Attachment(7, "c1", IPv4Address("10.128.9.9"))
    bed.run(state(7, reported=[wrong]))
    assert bed.reported[1] == bed.reported[0]


def test_ended_job_is_taken_away(bed):
    bed.run(state(7, 8))
    outcome, calls = bed.run(state(8, reported=bed.reported))
    assert calls == ["remove 7"]
    assert outcome.pods.keys() == {8}


def test_jobs_of_other_networks_and_nodes_are_left_out(bed):
    elsewhere = replace(state(8).jobs[8], nodes=("c2",))
    jobs = {**state(7, driver=Driver.PRIVATE).jobs, 8: elsewhere}
    assert bed.run(replace(state(), jobs=jobs))[1] == []


def test_what_an_earlier_daemon_made_is_known_before_the_first_pass(bed):
    bed.run(state(7))
    again = FlannelConverger("c1", bed.pods, bed.reported.append)
    assert again.last.pods == bed.pods.pods
    bed.pods.calls.clear()
    again.run(lambda: state(7, reported=bed.reported))
    assert bed.pods.calls == []


def test_half_made_pods_are_made_whole_or_taken_away(bed):
    bed.pods.broken = {7, 8}
    assert bed.run(state(7))[1] == ["remove 8", "add 7"]


def test_job_whose_id_is_another_users_begins_in_a_new_namespace(bed):
    bed.run(state(7))
    assert bed.run(state(7, uid=BOB))[1] == ["remove 7", "add 7"]


def test_damaged_pod_is_connected_again_when_it_is_time_to_check(bed):
    bed.run(state(7, 8))
    bed.pods.damaged = {7}
    assert bed.run(state(7, 8))[1] == []
    bed.now_s = CHECK_S
    outcome, calls = bed.run(state(7, 8, reported=bed.reported))
    assert calls == ["check 7", "check 8", "add 7"]
    assert not outcome.errors


def test_failure_is_of_its_job_alone_and_tried_again(bed):
    bed.pods.failing = {7}
    outcome, _ = bed.run(state(7, 8))
    assert outcome.errors == {"isthmus-flannel-7": "plugin: no"}
    assert [each.job for each in bed.reported] == [8]
    bed.pods.failing = set()
    assert bed.run(state(7, 8, reported=bed.reported))[1] == ["add 7"]


def test_pod_of_another_user_that_cannot_be_taken_away_is_not_given_on(bed):
    bed.run(state(7))
    bed.pods.failing = {7}
    outcome, calls = bed.run(state(7, uid=BOB))
    assert calls == ["remove 7"]
    assert outcome.errors.keys() == {"isthmus-flannel-7"}
    assert not outcome.pods


def test_what_etcd_does_not_take_is_an_error_of_the_job(bed):
    def refuse(attachment):
        raise EndedError("job 7 is not in etcd")

    converger = FlannelConverger("c1", bed.pods, refuse)
    assert converger.run(lambda: state(7)).errors == {"isthmus-flannel-7": "job 7 is not in etcd"}


def test_state_that_cannot_be_this_nodes_takes_nothing_away(bed):
    bed.run(state(7))
    outcome, calls = bed.run(replace(state(), nodes={"c2": NODES["c2"]}))
    assert calls == []
    assert outcome.errors.keys() == {"state"}
    assert outcome.pods.keys() == {7}
