"""A pass carries out what is wanted, and no more; failures stay with what failed."""

from dataclasses import replace
from ipaddress import IPv4Address, IPv4Network

import pytest

from isthmus.model.network import Driver, Job, Node, State, User
from isthmus.network import metrics
from isthmus.network.node.converge import LOOK_S, Converger
from tests.support.fakes.kernel import FakeFollower, FakeKernel


def state(*jobs):
    nodes = {name: Node(name, IPv4Address(f"10.0.0.{number}")) for number, name in enumerate(("c1", "c2"), 1)}
    legs = {"c1": IPv4Address("10.64.0.1"), "c2": IPv4Address("10.64.0.2")} if jobs else {}
    alice = User(1001, "alice", 4096, (IPv4Network("10.64.0.0/24"),), legs)
    known = {
        job: Job(
            job,
            1001,
            "run",
            Driver.PRIVATE,
            ("c1", "c2"),
            tuple(IPv4Address("10.64.0.0") + 2 * job + i for i in (0, 1)),
        )
        for job in jobs
    }
    return State(nodes, {1001: alice}, known)


class Bed:
    """A converger with its surroundings."""

    def __init__(self):
        self.kernel = FakeKernel()
        self.filter = FakeFollower(self.kernel.calls, "filter")
        self.names = FakeFollower(self.kernel.calls, "names")
        self.now_s = 0.0
        self.converger = Converger("c1", self.kernel, self.filter, self.names, lambda: self.now_s)

    def run(self, wanted):
        """Make a pass; return its outcome and what was called."""
        self.kernel.calls.clear()
        outcome = self.converger.run(lambda: wanted)
        return outcome, list(self.kernel.calls)


@pytest.fixture
def bed():
    return Bed()


def test_first_pod_brings_filter_leg_pod_and_names_in_this_order(bed):
    outcome, calls = bed.run(state(7))
    assert calls == ["filter", "observe", "add il4096", "add isthmus-7", "names"]
    assert not outcome.errors


def test_job_that_no_plan_can_hold_is_reported_once_and_leaves_others_alone(bed, caplog):
    damaged = state(7)
    damaged = replace(damaged, users={1001: replace(damaged.users[1001], legs={})})
    for _ in range(2):
        outcome, calls = bed.run(damaged)
        assert calls[0] == "filter"
        assert "no leg of its user" in outcome.errors["isthmus-7"]
    assert caplog.text.count("job 7 has no network here") == 1
    assert not bed.run(state(7))[0].errors


def test_pass_without_change_touches_nothing(bed):
    bed.run(state(7))
    assert bed.run(state(7))[1] == ["filter", "names"]


def test_state_that_is_done_is_not_done_again_for_who_only_wants_it(bed):
    wanted = state(7)
    bed.run(wanted)
    for again in (wanted, state(7)):
        bed.kernel.calls.clear()
        bed.converger.run(lambda again=again: again, again=False)
        assert bed.kernel.calls == ([] if again is wanted else ["filter", "names"])


def test_state_that_failed_is_done_again_for_whom_it_may_concern(bed):
    wanted = state(7)
    bed.names.error = OSError("full")
    bed.run(wanted)
    bed.names.error = None
    assert not bed.converger.run(lambda: wanted, again=False).errors


def test_next_job_changes_the_leg_and_adds_its_pod(bed):
    bed.run(state(7))
    assert bed.run(state(7, 8))[1] == ["filter", "change il4096", "add isthmus-8", "names"]


def test_last_job_leaves_nothing(bed):
    bed.run(state(7))
    assert bed.run(state())[1] == ["filter", "remove isthmus-7", "remove il4096", "names"]
    assert not bed.kernel.legs


def test_what_others_removed_is_found_after_a_while(bed):
    bed.run(state(7))
    bed.kernel.pods.clear()
    bed.now_s = LOOK_S
    assert bed.run(state(7))[1] == ["filter", "observe", "add isthmus-7", "names"]


def test_pod_that_fails_leaves_others_alone_and_is_tried_again(bed):
    bed.kernel.failing = {"isthmus-7"}
    outcome, _ = bed.run(state(7, 8))
    assert outcome.errors == {"isthmus-7": "make isthmus-7: Device or resource busy"}
    assert bed.kernel.pods.keys() == {8}
    bed.kernel.failing = set()
    assert bed.run(state(7, 8))[1] == ["filter", "observe", "add isthmus-7", "names"]


def test_nothing_new_is_made_without_its_rules(bed):
    bed.filter.error = OSError("nft: no")
    outcome, calls = bed.run(state(7))
    assert calls == ["filter", "names"]
    assert outcome.errors == {"filter": "nft: no"}


def test_names_that_fail_do_not_undo_pods(bed):
    bed.names.error = OSError("disk full")
    outcome, _ = bed.run(state(7))
    assert outcome.errors == {"names": "disk full"}
    assert bed.kernel.pods.keys() == {7}


def test_state_that_cannot_be_this_nodes_changes_nothing(bed):
    bed.run(state(7))
    stranger = replace(state(), nodes={"c2": Node("c2", IPv4Address("10.0.0.2"))})
    outcome, calls = bed.run(stranger)
    assert calls == []
    assert outcome.errors.keys() == {"state"}
    assert bed.kernel.pods.keys() == {7}


def test_pass_is_measured(bed):
    value = metrics.REGISTRY.get_sample_value
    before = value("isthmus_networkd_converge_seconds_count")
    bed.run(state(7))
    assert value("isthmus_networkd_converge_seconds_count") == before + 1


def test_outside_addresses_come_behind_their_rules_and_not_without_them():
    kernel = FakeKernel()
    followers = [FakeFollower(kernel.calls, name) for name in ("filter", "names", "outside")]
    converger = Converger("c1", kernel, *followers[:2], outside=followers[2])
    converger.run(lambda: state(7))
    assert kernel.calls == ["filter", "observe", "add il4096", "add isthmus-7", "outside", "names"]
    kernel.calls.clear()
    followers[0].error = OSError("nft: no")
    converger.run(lambda: state(7))
    assert kernel.calls == ["filter", "names"]
    followers[0].error, followers[2].error = None, OSError("eth0: no")
    assert converger.run(lambda: state(7)).errors == {"outside": "eth0: no"}
