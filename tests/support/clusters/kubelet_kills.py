"""kill -9 of kubelets while pods come and go, and the diary in which each start of a pod's program leaves a line.

A pod's program writes to a file of its name and job, since not every shared home appends for two nodes at once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from tests.support.clusters.cluster import ROOT, Node
from tests.support.clusters.user_clusters import Space, UserCluster
from tests.support.wait import wait

# The diary's claim, and a pod that runs all the time.
MANIFEST = ROOT / "tests/system/kubernetes/manifests/kubelet-deaths.yml"
# A program that dies again and again is started again after a minute at last.
PAUSE_S = 60
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
      command:
        - sh
        - -c
        - |
          job=$(grep -o 'job_[0-9]*' /proc/self/cgroup | head -n 1)
          echo {name} $job >> /diary/{name}.$job
          sleep {seconds}
      resources: {{requests: {{memory: 32Mi}}}}
      volumeMounts: [{{name: diary, mountPath: /diary}}]
  volumes: [{{name: diary, persistentVolumeClaim: {{claimName: diary}}}}]
"""


def make(space: Space, seconds: dict[str, float]) -> None:
    """Make pods that run for so long."""
    space.apply("".join(POD.format(name=name, seconds=each) for name, each in seconds.items()))


def delete(space: Space, names: Iterable[str]) -> None:
    """Have pods end, and wait for none."""
    space.kubectl(f"delete pod {' '.join(names)} --wait=false")


def kill(cluster: UserCluster, nodes: dict[str, Node]) -> None:
    """Kill the kubelet; return when another one is there."""
    before = restarts(cluster)
    node = nodes[cluster.job()["node"]]
    strike = f"pkill --signal KILL --uid {cluster.user} --full '[-]m isthmus.kubelet$'"
    # The one that was reported just now may not be a process yet.
    wait(lambda: node.run(strike).rc == 0, interval_s=0.1)
    wait(lambda: restarts(cluster), lambda count: count > before, timeout_s=PAUSE_S + 120)


def restarts(cluster: UserCluster) -> int:
    """Return how often the kubelet has been started again."""
    return int(cluster.status()["programs"]["kubelet"]["restarts"])


def starts(space: Space) -> dict[str, list[str]]:
    """Return the job of each start, by pod."""
    volume = space.get("pvc/diary")["spec"]["volumeName"]
    folder = space.get(f"pv/{volume}")["spec"]["hostPath"]["path"]
    found = defaultdict(list)
    reported = space.cluster.login.run_as(space.cluster.user, f"find {folder} -type f -exec cat {{}} +")
    for line in reported.splitlines():
        name, job = line.split()
        found[name].append(job)
    return found
