"""A user's Kubernetes, by who holds nothing of it, a pod's credential or an account's token; and by annotation."""

from __future__ import annotations

import json
import shlex

import pytest

from tests.support.attacks.commands import tried
from tests.support.clusters import jobs
from tests.support.clusters.cluster import ROOT
from tests.support.wait import wait

PROGRAM = (ROOT / "tests/support/attacks/kubernetes.py").read_text()
NOTHING = ("API server", "API server, invented token", "API server, password")
NOTHING += ("kubelet", "kubelet, invented token", "kubelet, exec", "channel")
POD = ("API server", "kubelet", "another pod", "another job", "option of scancel", "no hello", "huge frame")
POD += ("long message", "deep message", "report of another shape")
ACCOUNT = ("secrets", "nodes", "pods", "token", "exec", "binding", "impersonation")
ACCOUNT += ("kubelet", "kubelet, exec", "kubelet, logs")
FLAGS = {
    "wrap": "--wrap=id",
    "uid": "--uid=0",
    "export": "--time=5 --export=ALL",
    "newline": "--account='a\n--uid=0'",
    "two hyphens": "-- /bin/sh",
    "output": "-o/tmp/isthmus-attack",
    "file of nodes": "--nodelist=/etc/hostname",
    "mail program": "--mail-type=END --mail-user=-X",
}
# Files of the victim's, and what the kernel shows of its programs on their node.
FILES = {
    "kubeconfig": "cat VICTIM/.isthmus/kubeconfig",
    "key of the CA": "cat VICTIM/.isthmus/cluster/pki/ca.key",
    "data of etcd": "cat VICTIM/.isthmus/cluster/etcd/member/snap/db",
    "log": "cat VICTIM/.isthmus/cluster/logs/job.log",
    "credential of a pod": "cat VICTIM/.isthmus/pods/*/credential/tls.key",
    "names of files": "ls VICTIM/.isthmus",
    "folder on the node": "for folder in /var/tmp/isthmus-$(id -u VUSER)-*; do ls $folder/etcd && exit; done; false",
    "environment": "cat /proc/$(pgrep -o -u VUSER kube-apiserver)/environ | grep -a .",
    "root": "ls /proc/$(pgrep -o -u VUSER kube-apiserver)/root/cluster",
    "working folder": "ls /proc/$(pgrep -o -u VUSER kube-apiserver)/cwd/",
    "descriptors": "ls -l /proc/$(pgrep -o -u VUSER kube-apiserver)/fd | grep -e '->'",
    "memory": "head -c 1 /proc/$(pgrep -o -u VUSER etcd)/mem",
    "container of the job": "nsenter --target $(pgrep -o -u VUSER etcd) --mount --user true",
    "signal": "kill -0 $(pgrep -o -u VUSER etcd)",
    "batch script": "find $(scontrol show config | awk '/^SlurmdSpoolDir/{print $3}')"
    " -path '*/job*' -type f ! -user $USER -readable | grep .",
}
# A folder for data on a node's disk, made as a start with `--data node` makes it; printed.
FOLDER = """
from pathlib import Path
from isthmus.controlplane.data import node_disk
from isthmus.controlplane.layout import Layout
disk = node_disk.of(Layout(Path.home() / ".isthmus/cluster"), Path("/var/tmp"))
disk.etcd.mkdir(exist_ok=True)
print(disk.folder)
"""
# What the victim himself is asked first: a way that fails for its owner too would show nothing.
OWN = ("kubeconfig", "folder on the node", "environment", "root", "signal")


@pytest.fixture(scope="module")
def pods(victims_cluster, images):
    """Two pods of the victim's that run."""
    for name in ("web", "other"):
        victims_cluster.kubectl(f"run {name} --image={images['busybox']} --restart=Never -- sleep 600")
    try:
        victims_cluster.kubectl("wait --for=condition=Ready pod/web pod/other --timeout=180s")
        yield json.loads(victims_cluster.kubectl("get pods web other --output json"))["items"]
    finally:
        victims_cluster.kubectl("delete pods web other --grace-period=1 --wait=false")


@pytest.fixture(scope="module")
def answers(victims_cluster, pods, login, controller, victim):
    """Kind -> way -> what the servers did; the victim's control plane and pods run on."""
    server, job = victims_cluster.status()["server"], victims_cluster.job()["id"]
    kubelet = server.rpartition(":")[0] + ":10250"
    web, other = (f"$HOME/.isthmus/pods/{pod['metadata']['uid']}" for pod in pods)
    words = f"{server} {kubelet} {web} {other} {job} $(kubectl create token default)"
    command = f"export KUBECONFIG=$HOME/.isthmus/kubeconfig; python3 -c {shlex.quote(PROGRAM)} {words}"
    found = json.loads(login.run_as(victim, command))
    assert jobs.state(controller, job) == "RUNNING"
    victims_cluster.kubectl("wait --for=condition=Ready pod/web pod/other --timeout=60s")
    return found


@pytest.mark.attack("kube")
@pytest.mark.parametrize("way", NOTHING)
def test_nothing_opens_nothing(answers, way):
    """A control plane, from where its user's packets come, but without a credential."""
    assert answers["nothing"][way] in ("401", "403", "closed")


@pytest.mark.attack("kube")
@pytest.mark.parametrize("way", POD)
def test_credential_of_a_pod_is_its_own_alone(answers, way):
    """A pod's credential: as another pod or job, with frames too long, at the servers."""
    answered = {"report of another shape": "closed after an answer"}
    assert answers["pod"][way] in ("401", "403", "closed", answered.get(way))


@pytest.mark.attack("kube")
@pytest.mark.parametrize("way", ACCOUNT)
def test_service_account_may_nothing_it_was_not_given(answers, way):
    """A service account's token at API server and kubelet."""
    assert answers["account"][way] in ("401", "403")


@pytest.fixture(scope="module")
def annotated(victims_cluster, victim, controller, images):
    """Way -> the status of a pod with such an annotation, and its jobs."""
    items = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"flags-{number}", "annotations": {"slurm-job.hpk.io/flags": text}},
            "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": images["busybox"]}]},
        }
        for number, text in enumerate(FLAGS.values())
    ]
    victims_cluster.kubectl("apply -f -", json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))

    def statuses():
        found = json.loads(victims_cluster.kubectl("get pods --output json"))["items"]
        return {one["metadata"]["name"]: one["status"] for one in found if one["metadata"]["name"].startswith("flags-")}

    try:
        reported = wait(statuses, lambda seen: all(one["phase"] == "Failed" for one in seen.values()), timeout_s=60)
        made = controller.output(f"squeue --noheader --states=all --user={victim} --format=%j").split()
        yield {way: (reported[f"flags-{number}"], f"flags-{number}" in made) for number, way in enumerate(FLAGS)}
    finally:
        victims_cluster.kubectl("delete pods --wait=false " + " ".join(one["metadata"]["name"] for one in items))


@pytest.mark.full
@pytest.mark.attack("kube")
@pytest.mark.parametrize("way", FLAGS)
def test_annotation_says_nothing_dangerous_to_sbatch(annotated, way):
    """Options of sbatch in an annotation; tests/fuzz tries the others."""
    status, has_job = annotated[way]
    assert (status["reason"], has_job) == ("UnsupportedPod", False)


@pytest.fixture(scope="module")
def looks(victims_cluster, pods, nodes, login, attacker, victim):
    """What the attacker sees on the login node and on the control plane's own."""
    home = login.output(f"getent passwd {victim} | cut -d: -f6")
    ways = {name: command.replace("VICTIM", home).replace("VUSER", victim) for name, command in FILES.items()}
    place = nodes[victims_cluster.job()["node"]]
    folder = place.run_as(victim, f"/opt/isthmus/bin/python3 -I -c {shlex.quote(FOLDER)}").strip()
    try:
        # Their owner sees them.
        own = tried(place, victim, {name: ways[name] for name in OWN})
        assert all(one.worked for one in own.values()), own
        return {node.name: tried(node, attacker, ways) for node in (login, place)}
    finally:
        place.run_as(victim, f"rm -r {folder}")


@pytest.mark.attack("kube")
@pytest.mark.parametrize("way", FILES)
def test_cluster_of_another_is_unreadable(looks, way):
    """Another's kubeconfig, keys, data, logs and programs, on the login node and theirs."""
    assert not [node for node, found in looks.items() if found[way].worked]
