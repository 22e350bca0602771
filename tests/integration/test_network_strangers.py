"""What a daemon answers and does for users whose job it is not, and how often it writes for one; over a real etcd."""

import json

import pytest

from isthmus.model.services import rows
from isthmus.network.api import limits
from isthmus.network.api.messages import JobGet, JobServices, LeaseTake, Reserve, Unreserve
from isthmus.network.api.protocol import encode_request
from isthmus.network.state.keys import JobKey
from tests.support.networks.daemons import ALICE, BOB, code, prepare, two_hosts
from tests.support.pods.services import answering, place
from tests.support.wait import wait


@pytest.fixture
def host(cluster, tmp_path, monkeypatch):
    monkeypatch.setattr("isthmus.network.api.operations._login", lambda uid: f"user{uid}")
    with two_hosts(cluster, tmp_path) as made:
        yield made[0]


def forget(host, job):
    """Let etcd lose a job whose pod is still here."""
    host.store.release({job: host.store.load().revision_of(JobKey(job))})
    wait(lambda: job not in host.view.snapshot.state.jobs)


def test_failure_is_reported_to_the_jobs_user_and_root_alone(host):
    host.ask(prepare(reservation="secret-service"))
    assert 7 not in host.view.snapshot.state.jobs
    reported = {uid: host.ask(JobGet(7), uid) for uid in (0, ALICE, BOB)}
    assert all("secret-service" in reported[uid]["error"] for uid in (0, ALICE))
    assert (code(reported[BOB]), "secret-service" in json.dumps(reported[BOB])) == ("forbidden", False)


def test_pod_that_etcd_has_forgotten_is_shown_to_its_user_alone(host):
    host.ask(prepare())
    forget(host, 7)
    assert [host.ask(JobGet(7), uid)["state"] for uid in (0, ALICE)] == ["ready", "ready"]
    assert code(host.ask(JobGet(7), BOB)) == "forbidden"


@pytest.mark.parametrize(("uid", "state"), [(0, "absent"), (ALICE, "absent")])
def test_job_that_nobody_knows_is_absent(host, uid, state):
    assert host.ask(JobGet(8), uid)["state"] == state


@pytest.mark.parametrize(("job", "wanted"), [(7, "forbidden"), (8, "not_found")])
def test_rows_of_a_stranger_are_not_read(host, monkeypatch, job, wanted):
    host.ask(prepare())
    monkeypatch.setattr("isthmus.network.services.rows.read", None)
    reported = {"version": 1, "op": "job_services", "job": job, "services": rows({place(): answering("10.64.0.9:80")})}
    line = json.dumps(reported).encode()
    assert code(json.loads(host.operations.answer(line, BOB))) == wanted
    assert code(json.loads(host.operations.admit(line, BOB))) == wanted


def test_beginning_of_ones_own_long_request_is_let_through(host):
    host.ask(prepare())
    line = encode_request(JobServices(7, {place(): answering("10.64.0.9:80")}))
    assert [host.operations.admit(line, uid) for uid in (ALICE, 0)] == [None, None]


def test_user_who_writes_again_and_again_is_refused_and_others_are_not(host):
    churn = [Reserve("web"), Unreserve("web")] * int(limits.WRITES_AT_ONCE)
    revision = host.store.load().state.revision
    reported = [host.ask(each, BOB) for each in churn]
    refused = [each for each in reported if not each["ok"]]
    assert "changes at once" in refused[0]["error"]["message"]
    assert code(refused[0]) == "unavailable"
    # Some come back while this runs.
    assert host.store.load().state.revision - revision < 1.5 * limits.WRITES_AT_ONCE
    assert host.ask(LeaseTake(), ALICE)["ok"]
    assert all(host.ask(Reserve("web", BOB))["ok"] for _ in range(3))
