"""Pods that cannot run: each fails alone and says why; the others, and the kubelet, go on."""

import json

import pytest

from tests.support.wait import wait

# Pod -> its phase, a reason, and words of a message: the pod's or a container's.
BAD = {
    "wrong-image": ("Pending", "ImagePullBackOff", "isthmus/nothing"),
    "wrong-name": ("Pending", "InvalidImageName", "is no name of an image"),
    "never-pulled": ("Pending", "ErrImageNeverPull", "isthmus pull"),
    "wrong-partition": ("Pending", "FailedSubmit", "partition"),
    "too-large": ("Pending", "FailedSubmit", "Requested node configuration is not available"),
    "wrong-volume": ("Failed", "UnsupportedPod", "nfs is not offered"),
    "too-near": ("Failed", "UnsupportedPod", "hostPID is not offered"),
    "no-config": ("Pending", "CreateContainerConfigError", "nowhere"),
    "no-claim": ("Pending", "FailedMount", "nowhere"),
    "no-folder": ("Failed", "FailedMount", "/no/such/folder"),
    "no-command": ("Failed", "StartError", "/no/such/program"),
    "failing-init": ("Failed", "Error", ""),
    "crashing-init": ("Pending", "CrashLoopBackOff", "back-off"),
}
JOBLESS = {"wrong-image", "wrong-name", "never-pulled", "wrong-volume", "too-near", "no-config", "no-claim"}
LISTS = ("initContainerStatuses", "containerStatuses")


def reasons(status):
    """Return each reason in a status, with its message."""
    states = [fields for kind in LISTS for each in status.get(kind, ()) for fields in each["state"].values()]
    return [(reported.get("reason", ""), reported.get("message", "")) for reported in [status, *states]]


def admitted(space, pod):
    """Wait until a pod says what it should."""
    phase, reason, words = BAD[pod]

    def so(status):
        reported = reasons(status)
        return status["phase"] == phase and any(each[0] == reason and words in each[1] for each in reported)

    return wait(lambda: space.status(pod), so, timeout_s=180, interval_s=1)


@pytest.fixture(scope="module", autouse=True)
def restarts(space):
    """How often the kubelet had been started again before."""
    return space.cluster.status()["programs"]["kubelet"]["restarts"]


@pytest.mark.parametrize("pod", BAD)
def test_bad_pod_says_why(space, pod):
    assert admitted(space, pod)["phase"] != "Running"


@pytest.mark.parametrize("pod", ["wrong-image", "wrong-partition", "no-claim", "no-config", "crashing-init"])
def test_list_of_pods_shows_why_one_waits(space, pod):
    admitted(space, pod)
    reason = BAD[pod][1]
    wait(lambda: space.kubectl(f"get pod {pod} --no-headers").split()[2], lambda word: word.endswith(reason))


@pytest.mark.parametrize("pod", ["wrong-image", "wrong-partition", "wrong-volume", "no-folder", "crashing-init"])
def test_bad_pod_has_a_warning(space, pod):
    wait(lambda: [event["reason"] for event in space.events(pod) if event["type"] == "Warning"])


def test_pods_that_cannot_start_have_no_job(space, controller):
    for pod in JOBLESS:
        admitted(space, pod)
    names = controller.output(f"squeue --noheader --user={space.cluster.user} --format=%j").split()
    assert not JOBLESS & set(names)


def test_quotes_labels_and_host_paths_are_well(space, nodes):
    assert space.ended("odd")["phase"] == "Succeeded"
    *said, last = space.kubectl("logs odd").splitlines()
    assert said == ['it\'s "quoted" `id` $HOME \\ $(id)', "# ; & *"]
    assert last.removeprefix("blue") in {node.output("cat /etc/hostname") for node in nodes.values()}


def test_other_pods_and_the_kubelet_go_on(space, restarts):
    space.ready("pod/good")
    assert space.cluster.status()["programs"]["kubelet"]["restarts"] == restarts


def test_bad_pods_can_be_deleted(space):
    space.kubectl(f"delete pod {' '.join(BAD)} --timeout=120s")
    left = json.loads(space.kubectl("get pods --output json"))["items"]
    assert {pod["metadata"]["name"] for pod in left} == {"good", "odd"}
