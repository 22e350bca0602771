"""What `isthmus bench` gives a user's Kubernetes, and how it sees the end of it, with a real API server."""

import json
from threading import Thread

import pytest

from isthmus.bench import scripts, tables
from isthmus.bench.kubernetes import Kubernetes
from isthmus.bench.launches import Column
from isthmus.bench.output import OutputError
from isthmus.bench.plain import cluster, job
from isthmus.bench.plan import Plain
from isthmus.bench.scripts import NAMESPACE, Site
from isthmus.bench.sizes import SIZES, Table
from isthmus.bench.timing import Timing
from isthmus.clients.kube import kubeconfig
from isthmus.clients.kube.apiserver import Access, ApiServer
from isthmus.clients.kube.errors import KubeError
from tests.support.servers.etcd import program
from tests.support.wait import wait

SITE = Site("/programs", "ctl:5000/workloads/bench-openmpi:1", "", {"OMPI_MCA_a": "1"}, 96, has_network=True)
CREDENTIALS = {"certificate": "crt", "key": "key"}
LAUNCHES = [each for table in Table for each in tables.launches(table, SIZES["smoke"])]
POD = next(each for each in LAUNCHES if each.column is Column.POD)
MPIJOB = next(each for each in LAUNCHES if each.column is Column.MPIJOB)


@pytest.fixture(scope="module")
def api(api_server):
    """A client, where MPIJobs are known and nobody acts on anything."""
    done = api_server.kubectl("apply", "--server-side", "--filename", str(program("mpi-operator.yaml")))
    assert done.returncode == 0, done.stderr
    keys = api_server.pki
    found = ApiServer(Access(api_server.url, keys / "ca.crt", keys / "admin.crt", keys / "admin.key"))
    wait(lambda: served(found))
    return found


def served(api):
    try:
        return api.get("/apis/kubeflow.org/v2beta1/mpijobs")
    except KubeError:
        return None


@pytest.fixture
def platform(api):
    # As the controller manager does, which is not there.
    api.apply(scripts.namespace())
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": NAMESPACE}}
    api.apply(account)
    found = Kubernetes(api, SITE)
    found.prepare()
    return found


def set_status(api_server, what, status, after_s=0.0):
    """Play the kubelet, or the operator."""
    words = ["--namespace", NAMESPACE, "patch", what, "--subresource=status", "--type=merge", "--patch"]
    wait(lambda: api_server.kubectl("--namespace", NAMESPACE, "get", what).returncode == 0, timeout_s=30)
    done = api_server.kubectl(*words, json.dumps({"status": status}))
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "launch", [MPIJOB, *(each for each in LAUNCHES if each.row == "16 A")], ids=lambda one: one.key
)
def test_mpijobs_are_right(platform, api_server, launch):
    item = json.dumps(scripts.mpijob(launch, SITE, "b1"))
    done = api_server.kubectl("create", "--filename=-", "--dry-run=server", "--validate=strict", input=item)
    assert done.returncode == 0, done.stderr


PLAIN = [
    each
    for table in Table
    for each in tables.launches(table, SIZES["smoke"], plain=True)
    if each.column is Column.PLAIN and each.row in ("1/4", "inter", "16 A")
]


@pytest.mark.parametrize("launch", PLAIN, ids=lambda one: one.key)
def test_mpijobs_of_a_plain_kubernetes_are_right(platform, api_server, launch):
    item = json.dumps(job.mpijob(launch, SITE, "b1"))
    done = api_server.kubectl("create", "--filename=-", "--dry-run=server", "--validate=strict", input=item)
    assert done.returncode == 0, done.stderr


@pytest.fixture
def config(api_server, tmp_path):
    """A kubeconfig, as its administrator has it."""
    keys = api_server.pki
    of_cluster = {"server": api_server.url, "certificate-authority": str(keys / "ca.crt")}
    content = {
        "clusters": [{"name": "a", "cluster": of_cluster}],
        "users": [
            {"name": "a", "user": {f"client-{what}": str(keys / f"admin.{end}") for what, end in CREDENTIALS.items()}}
        ],
        "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
        "current-context": "a",
    }
    path = tmp_path / "plain.conf"
    path.write_text(json.dumps(content))
    return path


def make_ready(api_server, name):
    """Play the kubelet of a node."""
    unused = ("machineID", "systemUUID", "bootID", "kernelVersion", "osImage", "operatingSystem", "architecture")
    info = dict.fromkeys(unused, "") | {"kubeletVersion": "v1.36.3", "containerRuntimeVersion": "containerd://1.7.24"}
    ready = {"type": "Ready", "status": "True"}
    status = {"allocatable": {"cpu": "1500m", "memory": "2Gi"}, "conditions": [ready], "nodeInfo": info}
    words = ["patch", f"node/{name}", "--subresource=status", "--type=merge", "--patch"]
    done = api_server.kubectl(*words, json.dumps({"status": status}))
    assert done.returncode == 0, done.stderr
    done = api_server.kubectl("patch", f"node/{name}", "--type=merge", "--patch", '{"spec": {"taints": null}}')
    assert done.returncode == 0, done.stderr


@pytest.mark.usefixtures("api")
def test_plain_kubernetes_is_known_by_its_kubeconfig(api_server, config):
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "plain-1"}}
    done = api_server.kubectl("create", "--filename=-", input=json.dumps(node))
    assert done.returncode == 0, done.stderr
    found = ApiServer(kubeconfig.read(config))
    assert cluster.look(found).problem.startswith("no node of the plain Kubernetes takes pods")
    make_ready(api_server, "plain-1")
    assert cluster.look(found) == Plain(1, 1, 2048, ("containerd 1.7.24", "kubelet v1.36.3"))


def test_pod_is_right(platform, api_server):
    item = json.dumps(scripts.pod(POD, SITE, "b1"))
    done = api_server.kubectl("create", "--filename=-", "--dry-run=server", "--validate=strict", input=item)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("launch", "what", "status", "words"),
    [
        (POD, "pod/b2", {"phase": "Failed"}, "Pod b2 ended as Failed"),
        (MPIJOB, "mpijob/b2", {"conditions": [{"type": "Failed", "status": "True"}]}, "MPIJob b2 ended as Failed"),
    ],
)
def test_failure_is_seen_and_nothing_is_left(platform, api, api_server, launch, what, status, words):
    player = Thread(target=set_status, args=(api_server, what, status))
    player.start()
    with pytest.raises(OutputError, match=words):
        platform.run(launch, "b2")
    player.join()
    assert api_server.kubectl("--namespace", NAMESPACE, "get", what).returncode != 0


def test_success_is_seen_at_once(platform, api_server):
    player = Thread(target=set_status, args=(api_server, "pod/b3", {"phase": "Succeeded"}))
    player.start()
    text, began, ended = platform.run(POD, "b3")
    player.join()
    # Of a pod on no node there is no log.
    assert text == ""
    assert ended - began < 30


@pytest.mark.usefixtures("platform")
def test_what_does_not_end_is_removed(api, api_server):
    with pytest.raises(OutputError, match="b4 is Pending after 3 s"):
        Kubernetes(api, SITE, Timing(limit_s=lambda _: 3.0)).run(POD, "b4")
    assert api_server.kubectl("--namespace", NAMESPACE, "get", "pod/b4").returncode != 0


def test_watch_of_what_is_not_there_is_refused(api):
    with pytest.raises(KubeError) as error:
        next(api.watch("/apis/none.example/v1/things", 5))
    assert error.value.status == 404
