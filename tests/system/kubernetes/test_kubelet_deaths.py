"""kill -9 of the kubelet at random moments, while pods come and go: none lost, none twice."""

import secrets
import time
from collections import Counter

import pytest

from tests.support.waiting import wait

DEATHS = 3
CONVERGED_S = 90
POD = """
---
apiVersion: v1
kind: Pod
metadata: {{name: {name}}}
spec:
  restartPolicy: Never
  terminationGracePeriodSeconds: 1
  containers:
    - name: main
      image: busybox
      command: [sh, -c, 'echo {name} >> /diary/starts; sleep {seconds}']
      resources: {{requests: {{memory: 32Mi}}}}
      volumeMounts: [{{name: diary, mountPath: /diary}}]
  volumes: [{{name: diary, persistentVolumeClaim: {{claimName: diary}}}}]
"""
ENDING = [f"ends-{number}" for number in range(7)]
DELETED = [f"deleted-{number}" for number in range(3)]


def kill_kubelet(mine, nodes):
    """Return when another one is there."""
    before = mine.status()["programs"]["kubelet"]["restarts"]
    mine.on_its_node(nodes, f"pkill --signal KILL --uid {mine.user} --full '[-]m isthmus.kubelet$'")
    wait(lambda: mine.status()["programs"]["kubelet"]["restarts"], lambda count: count > before)


@pytest.fixture(scope="module")
def reader(space, nodes):
    """How the pod that runs all the time was, before all others came and went and the kubelet died three times."""
    space.ready("pod/reader")
    before = space.container("reader", "reader")
    space.apply("".join(POD.format(name=name, seconds=2) for name in ENDING))
    space.apply("".join(POD.format(name=name, seconds=1000) for name in DELETED))
    for number in range(DEATHS):
        time.sleep(3 * secrets.randbelow(1000) / 1000)
        if number == 1:
            space.kubectl(f"delete pod {' '.join(DELETED)} --wait=false")
        kill_kubelet(space.cluster, nodes)
    return before


def test_no_pod_is_lost(space, reader):
    assert {name: space.ended(name, CONVERGED_S)["phase"] for name in ENDING} == dict.fromkeys(ENDING, "Succeeded")


def test_deleted_pods_and_their_jobs_are_gone(space, reader, controller):
    space.kubectl(f"wait --for=delete pod/{' pod/'.join(DELETED)} --timeout={CONVERGED_S}s")
    names = controller.output(f"squeue --noheader --user={space.cluster.user} --format=%j").split()
    assert not set(DELETED) & set(names)


def test_no_pod_starts_twice(space, reader):
    for name in ENDING:
        space.ended(name, CONVERGED_S)
    starts = Counter(space.kubectl("exec reader -- cat /diary/starts").split())
    assert {name: starts[name] for name in ENDING} == dict.fromkeys(ENDING, 1)
    assert not [name for name in DELETED if starts[name] > 1]


def test_running_pod_goes_on(space, reader):
    """The same container, which has not noticed."""
    after = space.container("reader", "reader")
    assert (after["containerID"], after["restartCount"]) == (reader["containerID"], 0)
    assert "running" in after["state"]
