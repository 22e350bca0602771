"""Up, down and status, as far as Slurm and files decide."""

import dataclasses
import json

import pytest

from isthmus.clients.kube.errors import KubeError
from isthmus.clients.slurm.commands import SlurmError
from isthmus.controlplane.commands import down as ending
from isthmus.controlplane.commands import logs as reading
from isthmus.controlplane.commands import status as viewing
from isthmus.controlplane.commands import up as starting
from isthmus.controlplane.commands import user_options
from isthmus.controlplane.commands.context import Timing, control_planes
from isthmus.controlplane.data.snapshotter import DataReport
from isthmus.controlplane.errors import ControlPlaneError, UnansweredError
from isthmus.controlplane.layout import JOB_NAME

SERVER = "https://10.64.0.2:6443"


class Answers:
    """An API server that is ready and empty."""

    def __init__(self, home, server, timeout_s=0):
        assert server == SERVER

    def text(self, path):
        return "ok"

    def get(self, path):
        return {"gitVersion": "v1.36.3"} if path == "/version" else {"items": []}


class Silent(Answers):
    def text(self, path):
        raise KubeError(f"{SERVER} did not answer")

    get = text


@pytest.fixture
def answering(monkeypatch):
    def use(kind):
        for module in (starting, viewing):
            monkeypatch.setattr(module, "api", kind)

    use(Answers)
    return use


def up(context, timeout_s=60, **changes):
    reported = []
    return starting.up(context, changes, reported.append, timeout_s), reported


def test_up_submits_one_job_and_waits(context, slurm, ready, answering):
    slurm.on_submit = ready
    found, _ = up(context, partition="long")
    assert (found.created, found.server, found.warnings) == (True, SERVER, ())
    assert "--partition=long" in slurm.submitted[0]
    assert context.network.reserved == {"kubernetes"}
    assert context.network.joined


def test_second_up_finds_it_and_reports_that_options_wait(context, slurm, ready, answering):
    ready(slurm.add(JOB_NAME))
    found, _ = up(context, time="1-0")
    assert (found.created, slurm.submitted) == (False, [])
    assert "hold from the next start" in found.warnings[0]


def test_up_after_one_that_completes_waits_for_its_end(context, slurm, ready, answering):
    old = slurm.add(JOB_NAME, "COMPLETING")
    slurm.on_submit = ready
    assert up(context)[0].created
    assert f"--dependency=afterany:{old.id}" in slurm.submitted[0]


def test_state_of_another_job_is_not_this_ones(context, slurm, ready, answering):
    ready(slurm.add("old"))
    slurm.set(slurm.add(JOB_NAME), state="PENDING", reason="Resources")
    with pytest.raises(ControlPlaneError, match="not ready yet: job 2 waits for Slurm: Resources; job 2 stays"):
        up(context, timeout_s=0.2)


def test_job_that_can_never_start_is_not_waited_for(context, slurm, answering):
    slurm.set(slurm.add(JOB_NAME), state="PENDING", reason="PartitionTimeLimit")
    with pytest.raises(ControlPlaneError, match=r"job 1 can never start: PartitionTimeLimit; `isthmus down` ends it"):
        up(context)


def test_refused_options_are_reported_and_not_kept(context, slurm, answering):
    slurm.refusal = "invalid partition specified: nowhere"
    with pytest.raises(ControlPlaneError, match=r"refuses .* nowhere; choose others with --partition"):
        up(context, partition="nowhere")
    assert not context.home.cluster.user_options.exists()


def test_kubelet_that_does_not_stay_up_is_reported(context, slurm, ready, answering):
    slurm.on_submit = lambda job: ready(job, kubelet="backoff")
    (warning,) = up(context)[0].warnings
    assert "the kubelet does not stay up" in warning
    assert "a word" in warning


def test_job_that_ended_is_reported_with_its_last_words(context, slurm, answering):
    def die(job):
        del slurm.jobs[job.id]
        (context.home.cluster.logs / "job.log").write_text("no such image\n")

    slurm.on_submit = die
    with pytest.raises(ControlPlaneError, match="ended before the cluster was ready:\nno such image"):
        up(context)


def test_network_that_refuses_comes_before_any_job(context, slurm):
    context.network.refusal = "no free addresses"
    with pytest.raises(ControlPlaneError, match="no free addresses"):
        up(context)
    assert slurm.submitted == []


def test_ready_but_unreachable_is_reported(context, slurm, ready, answering):
    context = dataclasses.replace(context, timing=Timing(up_s=0, reach_s=-1))
    answering(Silent)
    slurm.on_submit = ready
    with pytest.raises(ControlPlaneError, match="did not answer; `isthmus doctor`"):
        up(context)


def test_down_ends_successor_first_then_in_order_then_pods(context, slurm):
    (context.home.pods / "uid-1").mkdir(parents=True)
    for name, state, comment in (
        (JOB_NAME, "RUNNING", ""),
        ("web", "RUNNING", "uid-1"),
        (JOB_NAME, "PENDING", ""),
        ("own", "RUNNING", "not a pod"),
    ):
        slurm.add(name, state, comment)
    ended = ending.down(context, lambda _: None)
    assert slurm.cancelled == [(JOB_NAME, False), (JOB_NAME, True), ("web", False)]
    assert (ended.jobs, ended.pods) == (("1", "3"), ("2",))
    assert [job.name for job in slurm.own_jobs()] == ["own"]


def test_down_ends_a_successor_that_comes_meanwhile(context, slurm, monkeypatch):
    slurm.add(JOB_NAME)
    cancel = slurm.cancel

    def late(jobs, *, in_order=False):
        cancel(jobs, in_order=in_order)
        if in_order and jobs:
            slurm.add(JOB_NAME, "PENDING")

    monkeypatch.setattr("isthmus.clients.slurm.own_jobs.cancel", late)
    assert ending.down(context, lambda _: None).jobs == ("1", "2")
    assert slurm.own_jobs() == []


def test_of_two_control_planes_the_older_one_serves(slurm):
    for state in ("PENDING", "COMPLETING", "CONFIGURING", "RUNNING", "RUNNING"):
        slurm.add(JOB_NAME, state)
    assert [job.id for job in control_planes(slurm.own_jobs())] == ["4", "5", "3", "1", "2"]


def test_down_keeps_pods_when_asked(context, slurm):
    (context.home.pods / "uid-1").mkdir(parents=True)
    slurm.add("web", comment="uid-1")
    assert ending.down(context, lambda _: None, keep_pods=True).pods == ()
    assert slurm.cancelled == []


def test_down_insists_where_nobody_listens(context, slurm):
    context = dataclasses.replace(context, timing=Timing(down_s=0, orderly_s=0))
    slurm.ignores_order = True
    slurm.add(JOB_NAME)
    ending.down(context, lambda _: None)
    assert slurm.cancelled == [(JOB_NAME, True), (JOB_NAME, False)]


def test_purge_removes_all_but_images(context, slurm):
    for name in ("cluster/etcd", "pods/uid", "volumes", "images"):
        (context.home.folder / name).mkdir(parents=True)
    context.home.kubeconfig.write_text("")
    context.network.reserve("kubernetes")
    ending.down(context, lambda _: None, purge=True)
    assert [path.name for path in context.home.folder.iterdir()] == ["images"]
    assert context.network.reserved == set()


def test_status_reports_programs_and_pods(context, slurm, ready, answering):
    ready(slurm.add(JOB_NAME), etcd="ready")
    found = viewing.status(context)
    assert (found.up, found.version, found.programs["etcd"]["state"]) == (True, "v1.36.3", "ready")


@pytest.mark.parametrize("state", ["PENDING", "RUNNING"])
def test_status_of_one_that_is_not_ready_reports_why(context, slurm, answering, state):
    slurm.add(JOB_NAME, state)
    found = viewing.status(context)
    assert not found.up
    assert f"job 1 is {state}" in found.problem


def test_status_of_none_is_down(context, slurm):
    assert dataclasses.astuple(viewing.status(context))[1:3] == (False, None)


def test_no_answer_of_slurm_is_an_error_and_not_down(context, slurm, monkeypatch):
    def silent():
        raise SlurmError("slurmctld is away")

    monkeypatch.setattr("isthmus.clients.slurm.own_jobs.own_jobs", silent)
    for command in (viewing.status, lambda at: ending.down(at, lambda _: None)):
        with pytest.raises(UnansweredError, match="away; try again"):
            command(context)


def test_logs_give_the_last_lines_and_name_what_there_is(context):
    logs = context.home.cluster.logs
    logs.mkdir(parents=True)
    (logs / "etcd.log").write_text("".join(f"{number}\n" for number in range(9)))
    assert list(reading.lines(context.home.cluster, "etcd", 2, follow=False)) == ["7\n", "8\n"]
    with pytest.raises(ControlPlaneError, match="no log coredns; choose from: etcd"):
        list(reading.lines(context.home.cluster, "coredns", 2, follow=False))


def test_up_keeps_the_request_and_reports_what_it_means(context, slurm, ready, answering):
    def edit(job):
        ready(job)
        reported = DataReport(job.id, "c1", "/disk", "snapshot", ("your cluster is as of noon",), every_s=30)
        context.home.cluster.data.write_text(json.dumps(dataclasses.asdict(reported)))

    slurm.on_submit = edit
    found, _ = up(context, data="node")
    assert user_options.read(context.home.cluster).data == "node"
    assert "when the node dies, what is newer is lost" in found.data
    assert found.warnings == ("your cluster is as of noon",)
    assert viewing.status(context).data["warnings"] == ["your cluster is as of noon"]
