"""The daemon dies, jobs come and go: nothing is lost, nothing is left."""

import json
import re

import pytest

from tests.support.clusters import jobs
from tests.support.wait import wait
from tests.system.network.conftest import PORT

CHURN = 20


def leftovers(node):
    """What a node still has of pods and legs."""
    links = node.output("ls /sys/class/net").split()
    namespaces = node.run("ls /run/netns").stdout.split()
    rules = node.output("nft list set inet isthmus owned; nft list set bridge isthmus pods")
    ours = [name for name in [*links, *namespaces] if name.startswith(("il", "ix", "iv", "isthmus-"))]
    return ours + [line for line in rules.splitlines() if "elements" in line]


def pid(node, service):
    return node.output(f"systemctl show --property MainPID --value {service}")


def kill(node, service="isthmus-networkd"):
    """End a daemon as a crash would, and wait until it is back."""
    before = pid(node, service)
    node.output(f"kill -9 {before}")
    # One question: between two of them the old one's end may come to be known.
    look = f"systemctl show --property ActiveState,MainPID {service}"
    wait(
        lambda: dict(line.split("=") for line in node.output(look).splitlines()),
        lambda seen: seen["ActiveState"] == "active" and seen["MainPID"] not in (before, "0"),
    )


@pytest.mark.disruptive
def test_live_pods_survive_the_daemons_death(serving, two_computes, probe):
    near, far = two_computes
    mine = serving[0]
    kill(near)
    mine[near.name].run(f"{probe} tcp {mine[far.name].address} {PORT}")
    mine[far.name].run(f"{probe} tcp {mine[near.name].address} {PORT}")


@pytest.mark.disruptive
def test_isolation_survives_the_daemons_death(serving, two_computes, probe):
    near = two_computes[0]
    kill(near)
    assert serving[0][near.name].try_run(f"{probe} tcp {serving[2][near.name].address} {PORT}").rc != 0


@pytest.mark.disruptive
def test_interface_removed_by_hand_comes_back(serving, two_computes, probe):
    near, far = two_computes
    mine = serving[0]
    for name in near.output("ls /sys/class/net").split():
        if name.startswith("ix"):
            near.output(f"ip link delete {name}")
    kill(near)
    mine[near.name].run(f"{probe} tcp {mine[far.name].address} {PORT}")


def test_every_slurmd_has_the_plugin(computes, user):
    for node in computes:
        for status in (
            node.output("isthmus network status --json"),
            node.run_as(user, "isthmus network status --json"),
        ):
            assert json.loads(status)["plugin"] == "loaded"


def test_daemon_reports_root_what_it_measured(computes, user):
    for node in computes:
        page = node.output("isthmus network metrics")
        counts = re.findall(r'^isthmus_networkd_nft_seconds_count\{rules="filter"\} (\S+)$', page, re.MULTILINE)
        assert float(*counts) >= 1
        assert "only root" in node.run_as(user, "isthmus network metrics 2>&1 || true")


@pytest.mark.disruptive
def test_key_that_cannot_be_read_is_reported_and_jobs_live_on(serving, two_computes, nodes, probe):
    near, far = two_computes
    member = next(node for node in nodes.values() if "etcd" in node.variables["groups"])
    settings = json.loads(near.output("cat /etc/isthmus/network.json"))
    key = f"/isthmus/{settings['cluster']}/network/jobs/4294967290"
    try:
        member.output(f"isthmus-etcdctl put {key} '{{}}'")
        wait(
            lambda: json.loads(near.output("isthmus network status --json"))["errors"].get("etcd", ""),
            lambda reported: key in reported,
        )
        serving[0][near.name].run(f"{probe} tcp {serving[0][far.name].address} {PORT}")
    finally:
        member.output(f"isthmus-etcdctl del {key}")
    wait(lambda: json.loads(near.output("isthmus network status --json"))["errors"], lambda reported: reported == {})


@pytest.mark.disruptive
def test_job_starts_soon_after_a_crash(login, user, two_computes):
    kill(two_computes[0])
    login.run_as(user, f"srun --pod-network --nodelist={two_computes[0].name} true")


@pytest.fixture
def quiet(controller, cluster):
    """No job on the cluster before, and none after."""
    ids = controller.output("squeue --noheader --format=%A").split()
    if ids:
        jobs.cancel(controller, *ids)


@pytest.mark.disruptive
def test_nothing_is_left_after_jobs_came_and_went(quiet, login, controller, user, other_user, two_computes):
    options = "--pod-network --nodes=2 --ntasks-per-node=1 --mem=20"
    started = [jobs.submit(login, who, options, "srun true") for _ in range(CHURN // 2) for who in (user, other_user)]
    for job in started:
        jobs.wait_for_job(controller, job, "COMPLETED", timeout_s=180)
    for node in two_computes:
        wait(lambda node=node: leftovers(node), lambda left: left == [])
    wait(
        lambda: controller.output(
            "isthmus network list --json | python3 -c 'import json, sys; print(len(json.load(sys.stdin)[\"jobs\"]))'"
        ),
        lambda left: left == "0",
    )
