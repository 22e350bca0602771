"""The life of a pod, on a real API server: submitted, shown, ended, deleted; and what may go wrong on the way."""

import time
import uuid

from isthmus.kubelet import metrics
from isthmus.model import job_feed
from isthmus.model.pod_job import JobState
from tests.support.servers.api_server import NODE
from tests.support.servers.api_user import SOON
from tests.support.wait import wait


def test_node_is_registered(bed, api):
    node = wait(
        lambda: api.get(f"/api/v1/nodes/{NODE}"), lambda node: "status" in node and "capacity" in node["status"]
    )
    assert node["status"]["capacity"]["cpu"] == "64"
    assert "ExtendWebSocketsToKubelet" in node["status"]["declaredFeatures"]
    lease = wait(
        lambda: api.get(f"/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{NODE}"),
        lambda found: "spec" in found,
    )
    assert lease["spec"]["holderIdentity"] == NODE


def test_pod_runs_ends_and_goes(bed, api):
    pod = api.pod()
    status = api.wait_phase(pod, "Running")
    assert (status["podIP"], status["containerStatuses"][0]["ready"]) == ("10.64.0.9", True)
    assert len(bed.slurm.of(pod["metadata"]["uid"])) == 1
    bed.exit(pod, 3)
    status = api.wait_phase(pod, "Failed")
    assert status["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 3
    wait(lambda: not (bed.folder(pod) / "credential").exists(), **SOON)
    assert (bed.folder(pod) / "report.json").exists()
    api.delete(pod)
    api.wait_gone(pod)
    wait(lambda: not bed.folder(pod).exists(), **SOON)


def test_pod_whose_next_job_has_another_address_has_that_alone(bed, api):
    """As one of a gang that gave its first job back; the API server adds up lists of addresses."""
    pod = api.pod()
    api.wait_phase(pod, "Running")
    bed.supervisor(pod).address = "10.64.0.10"
    bed.report(pod, "running", state="running", ready=False)
    status = wait(lambda: api.status(pod), lambda found: not found["containerStatuses"][0]["ready"], **SOON)
    assert (status["podIP"], status["podIPs"]) == ("10.64.0.10", [{"ip": "10.64.0.10"}])


def test_each_stage_of_a_start_is_measured_once(bed, api):
    measured = lambda: [  # noqa: E731
        metrics.REGISTRY.get_sample_value("isthmus_kubelet_pod_start_seconds_count", {"stage": stage})
        for stage in job_feed.Stage
    ]
    before = measured()
    pod = api.pod()
    api.wait_phase(pod, "Running")
    bed.exit(pod)
    api.wait_phase(pod, "Succeeded")
    assert measured() == [count + 1 for count in before]


def test_running_pod_is_stopped_in_order(bed, api):
    pod = api.pod()
    api.wait_phase(pod, "Running")
    api.delete(pod, grace=60)
    api.wait_gone(pod)
    # What is left of it when the supervisor gets it.
    assert 40 < bed.supervisor(pod).stops[0] <= 60
    wait(lambda: bed.slurm.of(pod["metadata"]["uid"])[0].state, lambda state: state is JobState.COMPLETED, **SOON)
    wait(lambda: not bed.folder(pod).exists(), **SOON)


def test_pod_is_stopped_in_order_seconds_after_its_deadline(bed, api):
    """Slurm, which counts in minutes, would let it go on: the fake one does not end it at all."""
    pod = api.pod(activeDeadlineSeconds=3, terminationGracePeriodSeconds=7)
    status = api.wait_phase(pod, "Failed")
    assert (status["reason"], bed.supervisor(pod).stops) == ("DeadlineExceeded", [7])
    (job,) = bed.slurm.of(pod["metadata"]["uid"])
    assert (job.state, 3 <= (job.ended - job.started).total_seconds() < 60) == (JobState.COMPLETED, True)


def test_files_of_a_pod_are_its_owners(bed, api):
    pod = api.pod()
    api.wait_phase(pod, "Running")
    paths = [bed.folder(pod), *bed.folder(pod).rglob("*")]
    kept = [path for path in paths if path.name != "report.json"]
    assert {path.stat().st_mode & 0o077 for path in kept} == {0}


def test_image_that_is_missing_costs_no_job(bed, api):
    pod = api.pod(container={"image": "missing"})
    api.wait_waiting(pod, "ErrImagePull")
    api.wait_waiting(pod, "ImagePullBackOff")
    assert not bed.slurm.of(pod["metadata"]["uid"])
    api.delete(pod)
    api.wait_gone(pod)


def test_config_that_is_missing_is_waited_for(bed, api):
    name = f"config-{uuid.uuid4().hex[:6]}"
    pod = api.pod(container={"envFrom": [{"configMapRef": {"name": name}}]})
    api.wait_waiting(pod, "CreateContainerConfigError")
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"WORD": "x"}}
    api.create("/api/v1/namespaces/default/configmaps", config)
    api.wait_phase(pod, "Running")
    environment = bed.supervisor(pod).plans[0]["containers"][0]["env"]
    assert {"name": "WORD", "value": "x"} in environment


def test_refused_job_is_reported_and_tried_again(bed, api):
    bed.slurm.refusal = "Invalid qos specification"
    try:
        pod = api.pod()
        reported = wait(lambda: api.status(pod), lambda status: status.get("reason") == "FailedSubmit", **SOON)
        assert (reported["phase"], "Invalid qos" in reported["message"]) == ("Pending", True)
    finally:
        bed.slurm.refusal = ""
    status = api.wait_phase(pod, "Running")
    assert "reason" not in status


def test_unsupported_pod_fails_alone(bed, api):
    pod = api.pod(nodeSelector={"no": "such"})
    status = api.wait_phase(pod, "Failed")
    assert "no In such" in status["message"]
    assert not bed.slurm.of(pod["metadata"]["uid"])


def test_death_on_slurms_side_is_reported(bed, api):
    pod = api.pod()
    api.wait_phase(pod, "Running")
    begun = time.monotonic()
    bed.slurm.end(bed.supervisor(pod).job, JobState.NODE_FAIL)
    status = api.wait_phase(pod, "Failed")
    assert status["reason"] == "NODE_FAIL"
    assert time.monotonic() - begun < 30


def test_pod_that_ends_well_when_slurm_cancels_it_fails(bed, api):
    """The supervisor's word comes first."""
    pod = api.pod()
    api.wait_phase(pod, "Running")
    number = bed.end_well(pod)
    container = wait(
        lambda: api.status(pod)["containerStatuses"][0], lambda found: "terminated" in found["state"], **SOON
    )
    assert container["state"]["terminated"]["exitCode"] == 0
    assert api.status(pod)["phase"] == "Running"
    bed.slurm.end(number, JobState.CANCELLED)
    assert api.wait_phase(pod, "Failed")["reason"] == "CANCELLED"


def scheduled(status):
    return next((one for one in status.get("conditions", []) if one["type"] == "PodScheduled"), {})


def test_waiting_job_reports_why(bed, api):
    bed.slurm.full = True
    try:
        pod = api.pod()
        reported = wait(
            lambda: scheduled(api.status(pod)), lambda found: "Slurm job" in found.get("message", ""), **SOON
        )
        assert reported["status"] == "False"
        assert "Resources" in reported["message"]
        api.delete(pod)
        api.wait_gone(pod)
        wait(lambda: bed.slurm.of(pod["metadata"]["uid"])[0].state, lambda state: state is JobState.CANCELLED, **SOON)
    finally:
        bed.slurm.full = False


def test_events_are_written(bed, api):
    pod = api.pod()
    api.wait_phase(pod, "Running")
    path = f"/api/v1/namespaces/default/events?fieldSelector=involvedObject.uid={pod['metadata']['uid']}"
    reasons = wait(
        lambda: {one["reason"] for one in api.get(path)["items"]},
        lambda found: {"Submitted", "Started"} <= found,
        **SOON,
    )
    assert reasons
