"""Services of a real API server on their way to the supervisors of pods, with driver private."""

import pytest

from isthmus.kubelet.objects.services import HEADLESS
from isthmus.model.network import Driver
from tests.support.pods import services
from tests.support.servers.api_server import ADVERTISED, NODE
from tests.support.servers.api_user import SOON, KubeUser
from tests.support.servers.kubelet_bed import Bed
from tests.support.wait import wait

SERVICES = "/api/v1/namespaces/default/services"
SLICES = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"
EVENTS = "/api/v1/namespaces/default/events"
API = "10.96.0.1 tcp 443"


@pytest.fixture(scope="module")
def bed(api_server, tmp_path_factory):
    bed = Bed(api_server, tmp_path_factory.mktemp("private"), Driver.PRIVATE)
    bed.start()
    yield bed
    KubeUser(api_server).clear()
    bed.close()


@pytest.fixture
def pod(bed, api):
    made = api.pod()
    api.wait_phase(made, "Running")
    return made


def make_service(api, name, annotations=None, **fields):
    """Make one; the API server gives it an address."""
    made = services.service(name, "")
    spec = {key: value for key, value in made["spec"].items() if not key.startswith("clusterIP")}
    meta = {"name": name, "annotations": annotations}
    return api.create(SERVICES, {"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": spec | fields})


def make_slice(api, service, *addresses):
    made = services.slice_of(service, *map(services.endpoint, addresses))
    meta = {"name": f"{service}-1", "labels": made["metadata"]["labels"]}
    return api.create(SLICES, {**made, "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "metadata": meta})


def events(api, about, reason):
    uid = about["metadata"]["uid"]
    return [one for one in api.get(EVENTS)["items"] if (one["involvedObject"]["uid"], one["reason"]) == (uid, reason)]


def test_api_servers_own_service_is_there_before_the_plan(bed, api_server, pod):
    supervisor = bed.supervisor(pod)
    assert API in supervisor.first_services
    wait(lambda: supervisor.services[API], lambda row: row == [0, [f"{ADVERTISED}:{api_server.port}"]], **SOON)


def test_pod_in_its_hosts_network_is_reported_none(bed, api):
    made = api.pod(hostNetwork=True)
    api.wait_phase(made, "Running")
    assert bed.supervisor(made).first_services == {}


def test_variables_name_the_services_address(bed, pod):
    reported = {each["name"]: each["value"] for each in bed.supervisor(pod).plans[0]["containers"][0]["env"]}
    assert (reported["KUBERNETES_SERVICE_HOST"], reported["KUBERNETES_SERVICE_PORT"]) == ("10.96.0.1", "443")


def test_changes_reach_a_pod_that_runs(bed, api, pod):
    supervisor = bed.supervisor(pod)
    made = make_service(api, "web", type="NodePort", sessionAffinity="ClientIP")
    place = f"{made['spec']['clusterIP']} tcp 80"
    wait(lambda: supervisor.services.get(place), lambda row: row == [10800, []], **SOON)
    make_slice(api, "web", "10.64.0.9", "10.64.0.8")
    wait(lambda: supervisor.services[place][1], lambda row: row == ["10.64.0.8:8080", "10.64.0.9:8080"], **SOON)
    api.remove(f"{SERVICES}/web")
    wait(lambda: place not in supervisor.services, **SOON)
    assert API in supervisor.services


def test_node_port_answers_at_the_nodes_address(bed, api, pod):
    made = make_service(api, "outward", type="NodePort")
    make_slice(api, "outward", "10.64.0.7")
    address = next(one["address"] for one in api.get(f"/api/v1/nodes/{NODE}")["status"]["addresses"])
    place = f"{address} tcp {made['spec']['ports'][0]['nodePort']}"
    wait(lambda: bed.supervisor(pod).services.get(place), lambda row: row == [0, ["10.64.0.7:8080"]], **SOON)


def test_many_changes_at_once_are_few_messages(bed, api, pod):
    supervisor = bed.supervisor(pod)
    before = supervisor.service_messages
    made = [make_service(api, f"many-{number}") for number in range(20)]
    wait(lambda: all(f"{each['spec']['clusterIP']} tcp 80" in supervisor.services for each in made), **SOON)
    assert supervisor.service_messages - before < 15


def test_kubelet_that_comes_back_reports_all_again(bed, api, pod):
    supervisor = bed.supervisor(pod)
    bed.kill()
    made = make_service(api, "meanwhile")
    before = supervisor.service_messages
    bed.start()
    wait(lambda: f"{made['spec']['clusterIP']} tcp 80" in supervisor.services, **SOON)
    assert supervisor.service_messages > before
    assert len(supervisor.plans) == 1


def test_what_the_daemon_refuses_becomes_an_event_of_the_pod(bed, api, pod):
    supervisor = bed.supervisor(pod)
    supervisor.services_error = "10.1.0.1 is no address of a Service"
    for _ in range(2):
        bed.report(pod, "running")
    (reported,) = wait(lambda: events(api, pod, "ServicesUnreachable"), **SOON)
    assert "10.1.0.1 is no address" in reported["message"]
    assert api.status(pod)["phase"] == "Running"


def test_headless_service_is_reported_once(bed, api):
    made = make_service(api, "bare", {HEADLESS: "true"}, clusterIP="None")
    (reported,) = wait(lambda: events(api, made, "MadeHeadless"), **SOON)
    assert reported["involvedObject"]["kind"] == "Service"
    api.patch(f"{SERVICES}/bare", {"metadata": {"labels": {"changed": "yes"}}})
    own = make_service(api, "own", clusterIP="None")
    last = make_service(api, "last", {HEADLESS: "true"}, clusterIP="None")
    wait(lambda: events(api, last, "MadeHeadless"), **SOON)
    assert [one["count"] for one in events(api, made, "MadeHeadless")] == [1]
    assert not events(api, own, "MadeHeadless")
