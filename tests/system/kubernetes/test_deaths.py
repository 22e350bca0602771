"""A cluster after kill -9, scancel, the time limit and a move: the same objects, and one writer."""

import uuid

import pytest

from tests.support.clusters import jobs
from tests.support.wait import stays, wait

DEATH_S = 180


@pytest.fixture
def written(mine):
    """An object that was acknowledged just before."""
    name = f"kept-{uuid.uuid4().hex[:8]}"
    mine.kubectl(f"create configmap {name}")
    return f"configmap/{name}"


def is_kept(mine, written):
    return mine.kubectl(f"get {written} -o name") == written


def pids(mine, nodes, words):
    """Return those of its node, none while they are started again."""
    found = mine.on_its_node(nodes, f"pgrep --uid {mine.user} --full '{words}' || true")
    return [int(pid) for pid in found.split()]


@pytest.mark.parametrize("program", ["etcd", "kube-apiserver", "kube-controller-manager", "coredns"])
def test_killed_program_comes_back(mine, nodes, written, program):
    before = mine.status()["programs"][program]["restarts"]
    # The death of another program may have ended this one too, which is then just being started again.
    pid = wait(lambda: pids(mine, nodes, f"^/usr/local/bin/{program}"))[0]
    mine.on_its_node(nodes, f"kill -KILL {pid}")
    wait(lambda: mine.status()["programs"][program]["restarts"], lambda count: count > before, timeout_s=DEATH_S)
    wait(lambda: mine.status()["up"], timeout_s=DEATH_S)
    assert is_kept(mine, written)


def test_killed_control_plane_begins_again_in_its_job(mine, nodes, written):
    job = mine.job()["id"]
    main = pids(mine, nodes, "isthmus.controlplane$")
    mine.on_its_node(nodes, f"kill -KILL {main[-1]}")
    wait(lambda: pids(mine, nodes, "isthmus.controlplane$"), lambda now: now and now != main, timeout_s=DEATH_S)
    wait(lambda: mine.status()["up"], timeout_s=DEATH_S)
    assert mine.job()["id"] == job
    assert len(pids(mine, nodes, "^/usr/local/bin/etcd")) == 1
    assert is_kept(mine, written)


def test_scancel_and_up_resume(mine, controller, written):
    jobs.cancel(controller, mine.job()["id"])
    assert mine.up()["created"]
    assert is_kept(mine, written)


def test_time_limit_hands_over(mine, controller, written):
    """Slurm's own signal, as it sends it before the limit."""
    job = mine.job()["id"]
    address = mine.status()["server"]
    controller.output(f"scancel --batch --signal=USR1 {job}")
    wait(lambda: (mine.status()["job"] or {}).get("id"), lambda now: now not in (None, job), timeout_s=180)
    again = mine.up()
    assert (again["created"], again["server"]) == (False, address)
    assert is_kept(mine, written)


def serving(status):
    return status["up"], status["job"]["id"], (status["successor"] or {}).get("id")


@pytest.mark.disruptive
def test_time_limit_without_room_is_served_through(mine, controller, computes, written):
    """No node takes a job: the successor waits, and the control plane serves on."""
    job, nodes = mine.job()["id"], ",".join(compute.name for compute in computes)
    controller.output(f"scontrol update nodename={nodes} state=drain reason=test")
    try:
        controller.output(f"scancel --batch --signal=USR1 {job}")
        successor = wait(lambda: mine.status()["successor"])
        assert successor["state"] == "PENDING"
        expected = (True, job, successor["id"])
        because = "an orderly end of the control plane takes less"
        stays(lambda: serving(mine.status()), lambda now: now == expected, seconds=15, because=because, interval_s=1)
        assert is_kept(mine, written)
    finally:
        controller.output(f"scontrol update nodename={nodes} state=resume")
    wait(lambda: (mine.status()["job"] or {}).get("id"), lambda now: now == successor["id"], timeout_s=180)
    wait(lambda: mine.status()["up"], timeout_s=DEATH_S)
    assert is_kept(mine, written)


@pytest.mark.disruptive
def test_move_to_another_node_keeps_address_and_objects(mine, controller, two_computes, written):
    before, node = mine.status()["server"], mine.job()["node"]
    job = mine.job()["id"]
    controller.output(f"scontrol update nodename={node} state=drain reason=test")
    try:
        controller.output(f"scontrol requeue {job}")
        # Slurm holds a requeued job for two minutes.
        wait(lambda: controller.output(f"squeue --noheader --jobs={job} --format=%T"), lambda state: state == "PENDING")
        controller.output(f"scontrol update jobid={job} starttime=now")
        moved = wait(mine.status, lambda reported: reported["up"] and reported["job"]["node"] != node, timeout_s=240)
    finally:
        controller.output(f"scontrol update nodename={node} state=resume")
    assert moved["server"] == before
    assert is_kept(mine, written)


def test_second_control_plane_is_refused(mine, login, written):
    """By hand, past `isthmus up`: the lock and Slurm both know better."""
    command = "srun --mem=500 /opt/isthmus/bin/python -m isthmus.controlplane"
    refused = login.try_as(mine.user, f"timeout 200 {command}")
    assert refused.rc != 0
    assert "locked by job" in refused.stderr + refused.stdout
    assert is_kept(mine, written)


def test_down_ends_everything_and_purge_leaves_nothing(theirs, login, controller):
    login.run_as(
        theirs.user, "mkdir -p .isthmus/volumes/v; unshare --map-root-user --map-auto chown 5:5 .isthmus/volumes/v"
    )
    theirs.down()
    assert controller.output(f"squeue --noheader --user={theirs.user}") == ""
    theirs.down("--purge --yes")
    left = login.run_as(theirs.user, "ls -A .isthmus 2>/dev/null | grep -v images || true")
    assert left == ""
    theirs.up()
