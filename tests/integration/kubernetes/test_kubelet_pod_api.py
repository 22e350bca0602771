"""What a pod's text may ask for beside containers, and what its events say, on a real API server."""

import uuid

from tests.support.servers.api_user import SOON
from tests.support.wait import wait

CLASSES = "/apis/node.k8s.io/v1/runtimeclasses"


def runtime_class(api, handler):
    """Make a RuntimeClass whose pods need a CPU and 100 MiB more; return its name."""
    name = f"class-{uuid.uuid4().hex[:6]}"
    overhead = {"podFixed": {"cpu": "1", "memory": "100Mi"}}
    api.create(CLASSES, {"metadata": {"name": name}, "handler": handler, "overhead": overhead})
    return name


def events(api, pod):
    """Return the pod's events: reason -> messages."""
    path = f"/api/v1/namespaces/default/events?fieldSelector=involvedObject.uid={pod['metadata']['uid']}"
    found = {}
    for one in api.get(path)["items"]:
        found.setdefault(one["reason"], []).append(one["message"])
    return found


def test_pod_of_a_runtime_class_of_the_node_runs_with_its_overhead(bed, api):
    plain = api.pod()
    api.wait_phase(plain, "Running")
    before = bed.slurm.submissions[-1]
    pod = api.pod(runtimeClassName=runtime_class(api, "apptainer"))
    api.wait_phase(pod, "Running")
    words = [
        dict(word.split("=", 1) for word in reported if "=" in word) for reported in (before, bed.slurm.submissions[-1])
    ]
    assert int(words[1]["--mem"].rstrip("M")) - int(words[0]["--mem"].rstrip("M")) == 100


def test_pod_of_another_runtime_class_waits_and_says_so(bed, api):
    jobs = len(bed.slurm.submissions)
    pod = api.pod(runtimeClassName=runtime_class(api, "kata-qemu"))
    words = 'Failed to create pod sandbox: no runtime for "kata-qemu" is configured; use a RuntimeClass'
    wait(lambda: events(api, pod).get("FailedCreatePodSandBox", [""]), lambda found: found[0].startswith(words), **SOON)
    reported = wait(lambda: api.status(pod), lambda status: status.get("reason") == "FailedCreatePodSandBox", **SOON)
    assert reported["phase"] == "Pending"
    assert len(bed.slurm.submissions) == jobs


def test_failed_probe_is_an_event(bed, api):
    pod = api.pod()
    api.wait_phase(pod, "Running")
    failures = {"liveness": {"times": 3, "message": "HTTP status 500"}}
    killing = "Container main failed liveness probe, will be restarted"
    bed.report(pod, "running", failures=failures, killing=killing)
    wanted = {"Created", "Started", "Unhealthy", "Killing"}
    found = wait(lambda: events(api, pod), lambda found: wanted <= set(found), **SOON)
    assert found["Unhealthy"] == ["Liveness probe failed: HTTP status 500"]
    assert found["Killing"] == [killing]


def image_volume(reference):
    mounts = [{"name": "image", "mountPath": "/image", "subPath": "etc"}]
    return {
        "volumes": [{"name": "image", "image": {"reference": reference}}],
        "container": {"volumeMounts": mounts},
    }


def test_image_volume_is_pulled_like_an_image(bed, api):
    pod = api.pod(**image_volume("kitten:2"))
    api.wait_phase(pod, "Running")
    plan = bed.supervisor(pod).plans[0]
    assert [(one["kind"], one["path"]) for one in plan["volumes"]] == [("image", plan["containers"][0]["image"])]
    assert plan["containers"][0]["mounts"][0]["sub_path"] == "etc"


def test_image_volume_that_cannot_be_pulled_holds_its_container_back(bed, api):
    pod = api.pod(**image_volume("missing:1"))
    api.wait_waiting(pod, "ImagePullBackOff")
    assert not bed.slurm.of(pod["metadata"]["uid"])
    messages = wait(lambda: events(api, pod).get("Failed"), **SOON)
    assert messages[0].startswith("Failed to pull image: there is no image docker://docker.io/library/missing:1")


def test_privileged_pod_runs_and_is_reported_what_that_means(bed, api):
    pod = api.pod(container={"securityContext": {"privileged": True}})
    api.wait_phase(pod, "Running")
    assert bed.supervisor(pod).plans[0]["containers"][0]["capabilities"] == {"add": ["ALL"], "drop": []}
    wait(lambda: "NotAsElsewhere" in events(api, pod), **SOON)


def test_ephemeral_container_that_cannot_be_is_refused_alone(bed, api):
    pod = api.pod()
    api.wait_phase(pod, "Running")
    path = f"/api/v1/namespaces/default/pods/{pod['metadata']['name']}/ephemeralcontainers"
    odd = {"name": "odd", "image": "tools", "securityContext": {"capabilities": {"add": ["SYS_MODULE"]}}}
    added = [odd, {"name": "debug", "image": "tools"}]
    api.patch(path, {"spec": {"ephemeralContainers": added}}, "strategic-merge-patch")
    supervisor = bed.supervisor(pod)
    wait(lambda: supervisor.ephemeral, **SOON)
    assert [(one["name"], one["target"]) for one in supervisor.ephemeral] == [("debug", "")]
    found = wait(lambda: events(api, pod).get("UnsupportedPod"), **SOON)
    assert found[0].startswith("container odd: capabilities SYS_MODULE are not offered")
