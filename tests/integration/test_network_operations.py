"""Two nodes that are asked for jobs, over a real etcd; only their kernels are not."""

import re
import threading
from ipaddress import IPv4Address

import pytest

from isthmus.model.network import Driver
from isthmus.network import metrics
from isthmus.network.api.messages import (
    JobGet,
    JobPrepare,
    JobRelease,
    JobServices,
    LeaseTake,
    List,
    Metrics,
    NodeForget,
    Reserve,
    Status,
    Trace,
)
from isthmus.network.state.keys import JobKey
from tests.support.networks.daemons import ALICE, BOB, code, prepare, two_hosts
from tests.support.pods.services import answering, place
from tests.support.wait import wait


@pytest.fixture
def hosts(cluster, tmp_path):
    with two_hosts(cluster, tmp_path) as made:
        yield made


def test_each_node_gets_its_address_whoever_is_asked_first(hosts):
    first, second = hosts
    waiting = threading.Thread(target=second.ask, args=(prepare(),))
    waiting.start()
    one = first.ask(prepare())
    waiting.join()
    two = second.ask(prepare())
    assert one["netns"] == "/run/netns/isthmus-7"
    assert one["address"] != two["address"]
    assert [host.kernel.pods[7].address for host in hosts] == [IPv4Address(each["address"]) for each in (one, two)]


def test_node_takes_addresses_where_the_first_node_is_silent(hosts):
    assert hosts[1].ask(prepare())["ok"]


def test_passes_are_measured_for_root_alone(hosts):
    name = "isthmus_networkd_converge_seconds_count"
    before = metrics.REGISTRY.get_sample_value(name)
    hosts[0].ask(prepare())
    page = hosts[0].ask(Metrics())["text"]
    (count,) = re.findall(rf"^{name} (\S+)$", page, re.MULTILINE)
    assert float(count) > before
    assert code(hosts[0].ask(Metrics(), ALICE)) == "forbidden"


def test_preparing_again_changes_nothing(hosts):
    first = hosts[0].ask(prepare())
    revision = hosts[0].store.load().state.revision
    assert hosts[0].ask(prepare()) == first
    assert hosts[0].store.load().state.revision == revision


def test_job_requeued_on_other_nodes_gets_other_addresses(hosts):
    hosts[0].ask(prepare(nodes=("c1",)))
    assert hosts[1].ask(prepare(nodes=("c2",)))["ok"]
    assert hosts[1].store.load().state.jobs[7].nodes == ("c2",)


def test_state_of_a_job_is_reported_to_its_user_and_root_alone(hosts):
    hosts[0].ask(prepare())
    assert [hosts[0].ask(JobGet(7), uid).get("state") for uid in (0, ALICE)] == ["ready", "ready"]
    assert code(hosts[0].ask(JobGet(7), BOB)) == "forbidden"
    assert hosts[0].ask(JobGet(8), BOB)["state"] == "absent"


def test_failure_is_reported_again_until_the_next_preparation(hosts):
    hosts[0].kernel.failing = {"isthmus-7"}
    assert code(hosts[0].ask(prepare())) == "failed"
    reported = hosts[0].ask(JobGet(7))
    assert reported["state"] == "failed"
    assert "make isthmus-7" in reported["error"]
    hosts[0].kernel.failing = set()
    assert hosts[0].ask(prepare())["ok"]
    assert hosts[0].ask(JobGet(7))["state"] == "ready"


@pytest.mark.parametrize(
    ("changes", "expected"),
    [({"nodes": ("c2",)}, "invalid"), ({"reservation": "web"}, "full")],
)
def test_job_that_cannot_be_here_is_refused(hosts, changes, expected):
    assert code(hosts[0].ask(prepare(**changes))) == expected


def test_released_job_leaves_the_node_and_stays_in_etcd(hosts):
    hosts[0].ask(prepare())
    assert hosts[0].ask(JobRelease(7))["ok"]
    hosts[0].operations._deps.converger.run(hosts[0].view.state)
    assert not hosts[0].kernel.pods
    assert 7 in hosts[0].store.load().state.jobs


def test_services_are_for_the_jobs_user_and_root_alone(hosts):
    """What is let through fails a step later: there is no such namespace here."""
    hosts[0].ask(prepare())
    reported = [code(hosts[0].ask(services(), uid)) for uid in (0, ALICE, BOB)]
    assert reported == ["failed", "failed", "forbidden"]
    assert code(hosts[0].ask(services("192.0.2.1"), ALICE)) == "invalid"
    assert code(hosts[0].ask(services(job=8), ALICE)) == "not_found"


def test_services_of_a_pod_that_etcd_has_forgotten_are_still_its_users(hosts):
    hosts[0].ask(prepare())
    store = hosts[0].store
    store.release({7: store.load().revision_of(JobKey(7))})
    wait(lambda: not hosts[0].view.snapshot.state.jobs)
    assert 7 in hosts[0].operations._deps.converger.last.plan.pods
    assert [code(hosts[0].ask(services(), uid)) for uid in (ALICE, BOB)] == ["failed", "forbidden"]


def services(address="10.96.0.9", job=7):
    return JobServices(job, {place(address): answering("10.64.0.9:8080")})


@pytest.mark.parametrize("request_", [prepare(), JobRelease(7)])
def test_user_may_neither_prepare_nor_release(hosts, request_):
    assert code(hosts[0].ask(request_, ALICE)) == "forbidden"
    assert not hosts[0].store.load().state.jobs


def test_lease_makes_a_leg_without_a_pod(hosts, monkeypatch):
    monkeypatch.setattr("isthmus.network.api.operations._login", lambda uid: f"user{uid}")
    reported = hosts[0].ask(LeaseTake(), ALICE)
    (leg,) = hosts[0].kernel.legs.values()
    assert (reported["leg"], reported["address"]) == (leg.name, str(leg.address))


def test_reserved_address_is_the_first_pods(hosts, monkeypatch):
    monkeypatch.setattr("isthmus.network.api.operations._login", lambda uid: f"user{uid}")
    address = hosts[0].ask(Reserve("web"), ALICE)["address"]
    wait(lambda: ALICE in hosts[0].view.snapshot.state.users)
    assert hosts[0].ask(prepare(reservation="web"))["address"] == address


def test_user_sees_his_own_jobs_and_root_all(hosts):
    hosts[0].ask(prepare())
    hosts[0].ask(JobPrepare(8, BOB, "bob", "other", ("c1",), Driver.PRIVATE))
    seen = {uid: [job["id"] for job in hosts[0].ask(List(), uid)["jobs"]] for uid in (0, ALICE, BOB)}
    assert seen == {0: [7, 8], ALICE: [7], BOB: [8]}
    assert hosts[0].ask(Status(), ALICE)["pods"] == 1


@pytest.fixture
def reserved(hosts, monkeypatch):
    """An address that alice keeps, and that her job 7 on the first node has."""
    monkeypatch.setattr("isthmus.network.api.operations._login", lambda uid: "alice")
    address = hosts[0].ask(Reserve("api"), ALICE)["address"]
    wait(lambda: all(ALICE in host.view.snapshot.state.users for host in hosts))
    assert hosts[0].ask(prepare(7, nodes=("c1",), reservation="api"))["address"] == address
    return address


def test_reserved_address_is_waited_for_until_its_job_is_released(hosts, reserved):
    """A successor starts as soon as Slurm has ended the job before; addresses are given back some seconds later."""
    first, second = hosts
    reported = []
    successor = prepare(8, nodes=("c2",), reservation="api", timeout_s=60)
    waiting = threading.Thread(target=lambda: reported.append(second.ask(successor)))
    waiting.start()
    first.ask(Reserve("other"), ALICE)
    assert not reported
    known = first.store.load()
    assert first.store.release({7: known.jobs()[7]}, known) == {7}
    waiting.join()
    assert reported[0]["address"] == reserved


def test_reserved_address_of_a_live_job_is_refused_in_time(hosts, reserved):
    refused = hosts[1].ask(prepare(8, nodes=("c2",), reservation="api", timeout_s=6))
    assert (code(refused), "job 7's" in refused["error"]["message"]) == ("full", True)


def test_node_is_forgotten_by_another_one_as_root(hosts):
    first, second = hosts
    assert code(first.ask(NodeForget("c2"), ALICE)) == "forbidden"
    assert code(first.ask(NodeForget("c1"))) == "invalid"
    assert first.ask(NodeForget("c2"))["forgotten"]
    assert set(second.store.load().state.nodes) == {"c1"}


def test_trace_reports_a_user_of_his_own_jobs_alone(hosts):
    hosts[0].ask(prepare())
    hosts[0].ask(prepare(8, BOB))
    assert hosts[0].ask(Trace("7", "7:c2"), ALICE)["verdict"] == "passes"
    assert code(hosts[0].ask(Trace("7", "8"), ALICE)) == code(hosts[0].ask(Trace("7", "9"), ALICE)) == "not_found"
    assert hosts[0].ask(Trace("7", "8"))["verdict"] == "refused"
