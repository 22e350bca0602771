"""Who answers at a Service, from what the API server says."""

from ipaddress import IPv4Address

import pytest

from isthmus.kubelet.objects.servicetable import table
from isthmus.model.services import Transport
from tests.support.pods.services import answering, endpoint, place, service, slice_of

READY = endpoint("10.64.0.3")
TARGET = "10.64.0.3:8080"


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, {place(): answering(TARGET)}),
        ({"type": "NodePort"}, {place(): answering(TARGET)}),
        ({"type": "LoadBalancer"}, {place(): answering(TARGET)}),
        ({"type": "ExternalName"}, {}),
        ({"clusterIP": "None", "clusterIPs": ["None"]}, {}),
        ({"clusterIP": None, "clusterIPs": None}, {}),
        ({"clusterIP": "fd00::1", "clusterIPs": ["fd00::1", "10.96.0.9"]}, {place(): answering(TARGET)}),
        ({"ports": []}, {}),
        ({"ports": [{"port": 81}]}, {place(port=81): answering(TARGET)}),
        ({"ports": [{"port": 80, "protocol": "UDP"}]}, {place(transport=Transport.UDP): answering()}),
        ({"ports": [{"port": 80, "name": "other"}]}, {place(): answering()}),
        ({"sessionAffinity": "ClientIP"}, {place(): answering(TARGET, affinity_s=10800)}),
        (
            {"sessionAffinity": "ClientIP", "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 7}}},
            {place(): answering(TARGET, affinity_s=7)},
        ),
    ],
)
def test_service_answers_at_its_own_addresses_and_ports(spec, expected):
    assert table([service(**spec)], [slice_of("web", READY)]) == expected


def test_node_ports_answer_at_the_nodes_address_where_one_is_given():
    ports = [{"port": 80, "nodePort": 30080}, {"port": 53, "protocol": "UDP", "nodePort": 30053}]
    services, slices = [service(type="LoadBalancer", ports=ports)], [slice_of("web", READY)]
    found = table(services, slices, IPv4Address("10.64.0.2"))
    assert found == {
        place(): answering(TARGET),
        place(port=53, transport=Transport.UDP): answering(),
        place("10.64.0.2", 30080): answering(TARGET),
        place("10.64.0.2", 30053, Transport.UDP): answering(),
    }
    assert set(table(services, slices)) == {place(), place(port=53, transport=Transport.UDP)}


@pytest.mark.parametrize(
    ("endpoints", "expected"),
    [
        ([], []),
        ([READY], [3]),
        ([endpoint("10.64.0.4", ready=True), READY], [3, 4]),
        ([endpoint("10.64.0.3", ready=False)], []),
        ([endpoint("10.64.0.3", ready=False, serving=True, terminating=True)], [3]),
        ([endpoint("10.64.0.3", ready=False, serving=False, terminating=True)], []),
        ([endpoint("10.64.0.3", ready=False, serving=True)], []),
        ([endpoint("10.64.0.3", ready=False, serving=True, terminating=True), endpoint("10.64.0.4")], [4]),
    ],
)
def test_ready_endpoints_answer_and_else_those_that_still_serve(endpoints, expected):
    found = table([service()], [slice_of("web", *endpoints)])
    assert found == {place(): answering(*(f"10.64.0.{number}:8080" for number in expected))}


def test_slices_of_a_service_are_one():
    more = slice_of("web", endpoint("10.64.0.5"), READY, ports=[{"port": 9090}, {"port": 70, "name": "other"}])
    found = table([service()], [slice_of("web", READY), more])
    assert found == {place(): answering(TARGET, "10.64.0.3:9090", "10.64.0.5:9090")}


@pytest.mark.parametrize(
    "other",
    [
        slice_of("web", READY, addressType="IPv6"),
        slice_of("web", READY, metadata={"namespace": "default"}),
        slice_of("web", READY, metadata={"namespace": "b", "labels": {"kubernetes.io/service-name": "web"}}),
        slice_of("other", READY),
        slice_of("web", READY, ports=[{"port": None}]),
        slice_of("web", READY, ports=[{"port": 8080, "protocol": "UDP"}]),
        slice_of("web", READY) | {"ports": None},
        slice_of("web") | {"endpoints": None},
    ],
)
def test_slice_of_something_else_adds_nothing(other):
    assert table([service()], [other]) == {place(): answering()}


def test_ports_go_by_name():
    named = service("web", "10.96.0.9", {"port": 80, "name": "a"}, {"port": 81, "name": "b"})
    ports = [{"name": "b", "port": 2}, {"name": "a", "port": 1}]
    found = table([named], [slice_of("web", READY, ports=ports)])
    assert found == {place(): answering("10.64.0.3:1"), place(port=81): answering("10.64.0.3:2")}
