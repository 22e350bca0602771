"""What pods name: ConfigMaps that change, tokens, claims, gates, ephemeral containers; and many pods at once."""

import base64
import json
import time
import uuid

from tests.support.servers.api_server import NODE
from tests.support.servers.api_user import SOON
from tests.support.wait import wait

CLASSES = "/apis/storage.k8s.io/v1/storageclasses"


def test_changed_config_reaches_the_running_pod(bed, api):
    name = api.config(word="old")
    volume = {"name": "config", "configMap": {"name": name}}
    mount = {"name": "config", "mountPath": "/etc/config"}
    pod = api.pod(volumes=[volume], container={"volumeMounts": [mount]})
    api.wait_phase(pod, "Running")
    api.patch(f"/api/v1/namespaces/default/configmaps/{name}", {"data": {"word": "new"}})
    word = base64.b64encode(b"new").decode()
    supervisor = bed.supervisor(pod)
    wait(lambda: supervisor.updates[-1:], lambda found: bool(found) and found[0][0]["files"][0]["data"] == word, **SOON)


def test_pod_sees_what_was_made_a_moment_before_it(bed, api):
    config = api.config(word="old")
    named = {"env": [{"name": "WORD", "valueFrom": {"configMapKeyRef": {"name": config, "key": "word"}}}]}
    api.wait_phase(api.pod(container=named), "Running")
    service = f"late-{uuid.uuid4().hex[:8]}"
    api.create(
        "/api/v1/namespaces/default/services", {"metadata": {"name": service}, "spec": {"ports": [{"port": 80}]}}
    )
    api.patch(f"/api/v1/namespaces/default/configmaps/{config}", {"data": {"word": "new"}})
    pod = api.pod(container=named)
    api.wait_phase(pod, "Running")
    reported = json.dumps(bed.supervisor(pod).plans[0]["containers"])
    assert f"{service.upper().replace('-', '_')}_SERVICE_HOST" in reported
    assert ('"new"' in reported, '"old"' in reported) == (True, False)


def test_token_is_bound_to_the_pod(bed, api):
    api.create("/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "robot"}})
    source = {"serviceAccountToken": {"path": "token", "expirationSeconds": 600}}
    volume = {"name": "token", "projected": {"sources": [source]}}
    mount = {"name": "token", "mountPath": "/token"}
    pod = api.pod(serviceAccountName="robot", volumes=[volume], container={"volumeMounts": [mount]})
    api.wait_phase(pod, "Running")
    files = bed.supervisor(pod).plans[0]["volumes"][0]["files"]
    token = base64.b64decode(files[0]["data"]).decode()
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
    user = api.create("/apis/authentication.k8s.io/v1/tokenreviews", review)["status"]["user"]
    assert user["username"] == "system:serviceaccount:default:robot"
    assert user["extra"]["authentication.kubernetes.io/pod-name"] == [pod["metadata"]["name"]]


def test_gated_pod_is_bound_when_its_gates_are_gone(bed, api):
    pod = api.pod(nodeName=None, schedulingGates=[{"name": "example.test/wait"}])
    # The next pod is bound: the kubelet has seen the gated one before it.
    api.wait_phase(api.pod(nodeName=None), "Running")
    assert not api.now(pod)["spec"].get("nodeName")
    path = f"/api/v1/namespaces/default/pods/{pod['metadata']['name']}"
    api.patch(path, {"spec": {"schedulingGates": None}})
    api.wait_phase(pod, "Running")
    assert api.now(pod)["spec"]["nodeName"] == NODE


def test_pod_waits_for_a_label_of_the_node(bed, api):
    pod = api.pod(nodeName=None, nodeSelector={"example.test/disk": "fast"})
    events = wait(lambda: api.events(pod, "FailedScheduling"), bool, **SOON)
    assert "example.test/disk In fast" in events[0]["message"]
    status = wait(lambda: api.status(pod), lambda status: status.get("conditions"), **SOON)
    assert (status["phase"], status["conditions"][0]["reason"]) == ("Pending", "Unschedulable")
    # Others go on meanwhile.
    api.wait_phase(api.pod(nodeName=None, nodeSelector={"kubernetes.io/os": "linux"}), "Running")
    assert not api.now(pod)["spec"].get("nodeName")
    assert not bed.slurm.of(pod["metadata"]["uid"])
    api.patch(f"/api/v1/nodes/{NODE}", {"metadata": {"labels": {"example.test/disk": "fast"}}})
    try:
        api.wait_phase(pod, "Running")
    finally:
        api.patch(f"/api/v1/nodes/{NODE}", {"metadata": {"labels": {"example.test/disk": None}}})
    # A label that has gone meets nothing any more.
    late = api.pod(nodeName=None, nodeSelector={"example.test/disk": "fast"})
    wait(lambda: api.events(late, "FailedScheduling"), bool, **SOON)
    assert not api.now(late)["spec"].get("nodeName")
    assert len(api.events(pod, "FailedScheduling")) == 1


def claim(api, kind, **mode):
    """Make a class, where a kind is given, and a claim of it; return the claim."""
    name = f"class-{uuid.uuid4().hex[:6]}"
    if kind:
        api.create(CLASSES, {"metadata": {"name": name}, "provisioner": f"isthmus/{kind}", **mode})
    spec = {"storageClassName": name, "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return api.create("/api/v1/namespaces/default/persistentvolumeclaims", {"metadata": {"name": name}, "spec": spec})


def volume_of(api, made):
    return api.get(f"/api/v1/persistentvolumes/pvc-{made['metadata']['uid']}")


def bind(api, made):
    """Do what the volume controller does, which does not run here."""
    meta = made["metadata"]
    path = f"/api/v1/namespaces/default/persistentvolumeclaims/{meta['name']}"
    api.patch(path, {"spec": {"volumeName": f"pvc-{meta['uid']}"}})
    api.patch(f"{path}/status", {"status": {"phase": "Bound"}})


def mounting(made):
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": made["metadata"]["name"]}}
    return {"volumes": [volume], "container": {"volumeMounts": [{"name": "data", "mountPath": "/data"}]}}


def test_claim_of_the_home_gets_a_folder(bed, api):
    made = claim(api, "home")
    pod = api.pod(**mounting(made))
    volume = wait(lambda: volume_of(api, made), lambda found: "spec" in found, **SOON)
    path = bed.home / ".isthmus/volumes" / volume["spec"]["hostPath"]["path"].rpartition("/")[2]
    assert (path.is_dir(), path.stat().st_mode & 0o077) == (True, 0)
    assert not bed.slurm.of(pod["metadata"]["uid"])
    bind(api, made)
    api.wait_phase(pod, "Running")
    assert bed.supervisor(pod).plans[0]["volumes"][0]["path"] == str(path)


def test_claim_of_a_nodes_disk_ties_its_pods_to_the_node(bed, api):
    made = claim(api, "local", volumeBindingMode="WaitForFirstConsumer")
    pod = api.pod(**mounting(made))
    volume = wait(lambda: volume_of(api, made), lambda found: "spec" in found, **SOON)
    terms = volume["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
    assert terms[0]["matchExpressions"][0]["values"] == ["c1"]
    bind(api, made)
    api.wait_phase(pod, "Running")
    second = api.pod(**mounting(made))
    api.wait_phase(second, "Running")
    assert "--nodelist=c1" in bed.slurm.submissions[-1]


def test_claim_of_a_class_that_is_missing_says_so(bed, api):
    made = claim(api, "")
    pod = api.pod(**mounting(made))
    reported = wait(lambda: api.status(pod), lambda status: "message" in status, **SOON)
    why = f'StorageClass "{made["spec"]["storageClassName"]}" is missing; name one of `kubectl get storageclasses`'
    assert (reported["reason"], why in reported["message"]) == ("FailedMount", True)
    # Somebody makes a volume by hand.
    spec = {**made["spec"], "capacity": {"storage": "1Gi"}, "hostPath": {"path": str(bed.home)}}
    del spec["resources"], spec["volumeMode"]
    api.create("/api/v1/persistentvolumes", {"metadata": {"name": f"pvc-{made['metadata']['uid']}"}, "spec": spec})
    bind(api, made)
    api.wait_phase(pod, "Running")


def join(api, pod, **added):
    path = f"/api/v1/namespaces/default/pods/{pod['metadata']['name']}/ephemeralcontainers"
    api.patch(path, {"spec": {"ephemeralContainers": [added]}}, "strategic-merge-patch")


def test_ephemeral_container_is_sent_once(bed, api):
    pod = api.pod()
    api.wait_phase(pod, "Running")
    join(api, pod, name="debug", image="tools", targetContainerName="main")
    supervisor = bed.supervisor(pod)
    wait(lambda: supervisor.ephemeral, **SOON)
    bed.report(pod, "running")
    join(api, pod, name="next", image="tools", targetContainerName="main")
    sent = wait(lambda: [*supervisor.ephemeral], lambda found: "next" in [one["name"] for one in found], **SOON)
    assert [(one["name"], one["target"]) for one in sent] == [("debug", "main"), ("next", "main")]


def test_ephemeral_container_without_image_holds_up_nobody(bed, api):
    pod = api.pod()
    api.wait_phase(pod, "Running")
    join(api, pod, name="first", image="missing")

    def waiting():
        return [each["state"].get("waiting", {}) for each in api.status(pod).get("ephemeralContainerStatuses", ())]

    (waits,) = wait(waiting, lambda found: found and "message" in found[0], **SOON)
    assert (waits["reason"], "there is no image" in waits["message"]) == ("ErrImagePull", True)
    join(api, pod, name="second", image="tools")
    supervisor = bed.supervisor(pod)
    wait(lambda: [one["name"] for one in supervisor.ephemeral], lambda found: found == ["second"], **SOON)
    bed.exit(pod)
    api.wait_phase(pod, "Succeeded")


def test_many_pods_at_once_run_once(bed, api):
    before, questions, begun = len(bed.slurm.submissions), bed.slurm.questions, time.monotonic()
    made = [api.pod() for _ in range(100)]
    for pod in made:
        wait(
            lambda pod=pod: api.status(pod),
            lambda status: status.get("phase") == "Running",
            timeout_s=180,
            interval_s=0.2,
        )
    took_s = time.monotonic() - begun
    assert len(bed.slurm.submissions) - before == len(made)
    # Two a second, and the one with which the first second begins.
    assert bed.slurm.questions - questions <= 1 + 2 * took_s
