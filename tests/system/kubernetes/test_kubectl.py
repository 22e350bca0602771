"""What users do to running pods by kubectl: logs, exec, cp, port-forward, debug; and what the node serves."""

import pytest

from tests.support.clusters.user_clusters import fetch
from tests.support.wait import wait


@pytest.fixture(scope="module")
def web(space):
    """A pod with a page."""
    space.ready("pod/web")
    return space


def test_ready_pod_says_nothing_of_what_was_before(web):
    reported = {one["type"]: one for one in web.status("web")["conditions"]}
    assert {kind: one["status"] for kind, one in reported.items() if one["status"] != "True"} == {}
    assert not [one for one in reported.values() if "message" in one or "reason" in one]


def test_logs_follow_to_the_end(space):
    wait(lambda: space.container("counter", "counter"), lambda reported: reported.get("containerID"))
    assert space.kubectl("logs --follow counter").splitlines() == [f"line {number}" for number in range(1, 6)]


def test_logs_are_cut_as_asked(space):
    space.ended("counter")
    assert space.kubectl("logs counter --tail=2").splitlines() == ["line 4", "line 5"]
    assert space.kubectl("logs counter --limit-bytes=4") == "line"
    stamped = space.kubectl("logs counter --tail=1 --timestamps").split(maxsplit=1)
    assert (stamped[0][-1], stamped[1]) == ("Z", "line 5")


def test_logs_of_the_previous_run_are_kept(space):
    wait(
        lambda: space.container("crasher", "crasher"),
        lambda reported: reported.get("restartCount") and reported["state"].get("running"),
    )
    assert space.kubectl("logs crasher --previous") == "this is run 1"
    wait(lambda: space.kubectl("logs crasher"), lambda said: said == "this is run 2")


def test_exec_reports_the_exit_code_and_both_streams(web):
    done = web.try_kubectl("exec web -- sh -c 'echo out; echo err >&2; exit 7'")
    assert (done.rc, done.stdout.strip()) == (7, "out")
    assert done.stderr.splitlines()[0] == "err"


def test_exec_passes_standard_input(web):
    assert web.kubectl("exec --stdin web -- sh -c 'wc -c'", "12345") == "6"


def test_exec_of_nothing_fails(web):
    done = web.try_kubectl("exec web -- /no/such/program")
    assert done.rc != 0
    assert "/no/such/program" in done.stderr


def test_cp_brings_files_there_and_back(web):
    web.cluster.login.run_as(web.cluster.user, "seq 20000 > .there")
    web.kubectl("cp .there web:/www/there")
    web.kubectl("cp web:/www/there .back")
    web.cluster.login.run_as(web.cluster.user, "cmp .there .back && rm .there .back")


def test_port_forward_reaches_the_pod(web):
    ask = fetch("http://127.0.0.1:$port/")
    forward = (
        "port-forward pod/web :8080 > .ports & forward=$!; trap 'kill $forward; rm .ports' EXIT; "
        "until port=$(sed -n 's/^Forwarding from 127.0.0.1:\\([0-9]*\\).*/\\1/p' .ports | grep .); do sleep 0.1; done; "
        f"{ask} && {ask}"
    )
    assert web.kubectl(forward).split() == ["hello", "hello"]


def test_ephemeral_container_joins_the_pod(web):
    web.kubectl(f"debug web --image={web.images['busybox']} --container=look -- wget -q -O - http://127.0.0.1:8080/")
    wait(
        lambda: web.container("web", "look", "ephemeralContainerStatuses"),
        lambda reported: "terminated" in reported.get("state", {}),
    )
    assert web.kubectl("logs web --container look") == "hello"


@pytest.mark.parametrize("path", ["healthz", "pods", "metrics", "metrics/resource", "stats/summary"])
def test_node_serves(web, path):
    reported = web.kubectl(f"get --raw /api/v1/nodes/slurm/proxy/{path}")
    assert reported == "ok" if path == "healthz" else "web" in reported or "kubelet" in reported


def test_users_have_pods_of_the_same_name(web, theirs, images):
    """Each his own."""
    theirs.kubectl(f"run web --image={images['busybox']} --restart=Never -- echo of {theirs.user}")
    wait(
        lambda: theirs.kubectl("get pod web -o jsonpath={.status.phase}"),
        lambda phase: phase == "Succeeded",
        timeout_s=180,
    )
    assert theirs.kubectl("logs web") == f"of {theirs.user}"
    assert web.kubectl("exec web -- cat /www/index.html") == "hello"
    theirs.kubectl("delete pod web")
