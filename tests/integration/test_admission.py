"""The policies that stand in for a scheduler and shape Services, on a real API server."""

import json

import pytest
import yaml

from isthmus.controlplane import bootstrap
from isthmus.kubelet.objects.services import HEADLESS
from tests.support.servers import control_planes
from tests.support.wait import wait

POD = {"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [{"name": "main", "image": "busybox"}]}}
SERVICE = {"apiVersion": "v1", "kind": "Service", "spec": {"selector": {"app": "web"}}}
PORTS = [{"name": f"p{number}", "port": 80 + number, "targetPort": 8080} for number in range(3)]


LABEL = {"key": "disk", "operator": "Exists"}
FIELD = {"key": "metadata.name", "operator": "In", "values": ["slurm"]}


def affinity(**term):
    required = {"nodeSelectorTerms": [term]}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}}


@pytest.fixture(scope="module")
def control(tmp_path_factory):
    with control_planes.running(tmp_path_factory.mktemp("admission"), headless=True) as made:
        # A pod needs its namespace's account; policies are heard of a moment after they were made.
        wait(lambda: made.kubectl("get", "serviceaccounts", "-o", "name"), bool)
        number = iter(range(100))
        wait(lambda: make(made, POD, f"probe-{next(number)}")["spec"].get("nodeName"))
        yield made


def make(control, kind, name, annotations=None, **spec):
    item = kind | {"metadata": {"name": name, "annotations": annotations}, "spec": kind["spec"] | spec}
    return json.loads(control.kubectl("create", "-o", "json", "-f", "-", text=json.dumps(item)))


def test_pod_is_bound_as_it_is_made(control):
    made = make(control, POD, "plain")
    assert made["spec"]["nodeName"] == "slurm"
    assert made["status"]["phase"] == "Pending"


@pytest.mark.parametrize(
    ("name", "spec", "node"),
    [
        ("gated", {"schedulingGates": [{"name": "example.org/quota"}]}, None),
        ("other", {"schedulerName": "volcano"}, None),
        ("named", {"nodeName": "elsewhere"}, "elsewhere"),
        ("selecting", {"nodeSelector": {"disk": "fast"}}, None),
        ("choosing", affinity(matchExpressions=[LABEL]), None),
        ("choosing-both", affinity(matchExpressions=[LABEL], matchFields=[FIELD]), None),
        # As a DaemonSet makes it.
        ("of-a-daemon-set", affinity(matchFields=[FIELD]), "slurm"),
        ("empty", {"nodeSelector": {}, "affinity": {"nodeAffinity": {}}}, "slurm"),
    ],
)
def test_pod_that_says_otherwise_is_left_alone(control, name, spec, node):
    assert make(control, POD, name, **spec)["spec"].get("nodeName") == node


def test_gated_pod_can_be_bound_when_its_gates_are_gone(control):
    """By the kubelet's own rights: Node authorizer and the role `isthmus:kubelet`."""
    make(control, POD, "waits", schedulingGates=[{"name": "example.org/quota"}])
    control.kubectl("patch", "pod", "waits", "--type=json", "-p", '[{"op":"remove","path":"/spec/schedulingGates"}]')
    who = ["--as=system:node:slurm", "--as-group=system:nodes"]
    binding = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": "waits", "namespace": "default"},
        "target": {"apiVersion": "v1", "kind": "Node", "name": "slurm"},
    }
    path = "/api/v1/namespaces/default/pods/waits/binding"
    control.kubectl("create", "--raw", path, "-f", "-", *who, text=json.dumps(binding))
    assert control.kubectl("get", "pod", "waits", "-o", "jsonpath={.spec.nodeName}") == "slurm"


def test_pods_of_a_deployment_are_bound(control):
    control.kubectl("create", "deployment", "web", "--image=busybox", "--replicas=2")
    nodes = "jsonpath={.items[*].spec.nodeName}"
    wait(
        lambda: control.kubectl("get", "pods", "-l", "app=web", "-o", nodes), lambda reported: reported == "slurm slurm"
    )


@pytest.mark.parametrize("kind", ["ClusterIP", "NodePort", "LoadBalancer"])
def test_service_becomes_headless(control, kind):
    spec = make(control, SERVICE, f"headless-{kind.lower()}", type=kind, ports=PORTS)["spec"]
    assert (spec["type"], spec["clusterIP"], spec["clusterIPs"]) == ("ClusterIP", "None", ["None"])
    assert [port.get("nodePort") for port in spec["ports"]] == [None] * 3


@pytest.mark.parametrize(("name", "own"), [("says-a", None), ("says-b", {}), ("says-c", {"mine": "yes"})])
def test_service_that_became_headless_says_so(control, name, own):
    assert make(control, SERVICE, name, own, ports=PORTS)["metadata"]["annotations"] == (own or {}) | {HEADLESS: "true"}


def test_service_that_was_headless_says_nothing(control):
    made = make(control, SERVICE, "of-itself", clusterIP="None", ports=PORTS)
    assert "annotations" not in made["metadata"]


def test_service_with_every_option_of_a_load_balancer_is_taken(control):
    given = {
        "type": "LoadBalancer",
        "externalTrafficPolicy": "Local",
        "sessionAffinity": "ClientIP",
        "loadBalancerClass": "example.org/class",
        "loadBalancerSourceRanges": ["192.0.2.0/24"],
        "allocateLoadBalancerNodePorts": False,
        "ports": [{"port": 80, "nodePort": 30080}],
    }
    assert make(control, SERVICE, "everything", **given)["spec"]["clusterIP"] == "None"


def test_service_stays_headless_when_it_is_changed(control):
    make(control, SERVICE, "changing", ports=PORTS)
    control.kubectl("patch", "service", "changing", "-p", '{"spec": {"type": "NodePort"}}')
    reported = json.loads(control.kubectl("get", "service", "changing", "-o", "json"))["spec"]
    assert (reported["type"], reported["clusterIP"]) == ("ClusterIP", "None")


def test_external_name_and_the_api_servers_own_service_stay(control):
    spec = make(control, SERVICE, "outside", type="ExternalName", externalName="example.org", selector=None)["spec"]
    assert "clusterIP" not in spec
    assert control.kubectl("get", "service", "kubernetes", "-o", "jsonpath={.spec.clusterIP}") == "10.96.0.1"


def test_objects_are_made_again_and_set_back(control):
    control.kubectl("delete", "storageclass", "home")
    control.kubectl("label", "storageclass", "local", "mine=yes")
    assert bootstrap.apply(control.api, "slurm", headless=True) > 10
    reported = yaml.safe_load(control.kubectl("get", "storageclass", "-o", "yaml"))["items"]
    assert {item["metadata"]["name"]: item["metadata"].get("labels") for item in reported} == {
        "home": None,
        "local": {"mine": "yes"},
    }


def test_services_get_addresses_where_they_may(control):
    """What a site does that gives pods address translation later."""
    bootstrap.apply(control.api, "slurm", headless=False)
    number = iter(range(100))

    def address():
        return make(control, SERVICE, f"addressed-{next(number)}", ports=PORTS)["spec"]["clusterIP"]

    assert wait(address, lambda given: given != "None").startswith("10.96.")
