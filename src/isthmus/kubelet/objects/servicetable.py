"""From Services and EndpointSlices to the table that pods' packet filters are built from; pure.

As in kube-proxy, ready endpoints are used, or terminating ones that still serve if none is ready. All pods are
on one Kubernetes node, so traffic policies and zones have no effect.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from ipaddress import AddressValueError, IPv4Address

from isthmus.model.pod_inputs import Object
from isthmus.model.services import Answering, Endpoint, ServicePort, Transport

SERVICES = "/api/v1/services"
SLICES = "/apis/discovery.k8s.io/v1/endpointslices"
SLICE_OF = "kubernetes.io/service-name"
# Default of Kubernetes (v1.ClientIPConfig), seconds.
_AFFINITY_S = 10800
_Name = tuple[str, str]


def table(
    services: Iterable[Object], slices: Iterable[Object], node: IPv4Address | None = None
) -> dict[ServicePort, Answering]:
    """Return the endpoints of each Service's ports; Services without an IPv4 cluster IP are left out.

    Args:
        services: of the cluster.
        slices: its EndpointSlices.
        node: an address of the node's at which node ports answer; None for none.
    """
    by_service: dict[_Name, list[Object]] = defaultdict(list)
    for piece in slices:
        name = (piece["metadata"].get("labels") or {}).get(SLICE_OF)
        if name and piece.get("addressType") == "IPv4":
            by_service[piece["metadata"]["namespace"], name].append(piece)
    found: dict[ServicePort, Answering] = {}
    for service in services:
        own = by_service[service["metadata"]["namespace"], service["metadata"]["name"]]
        for address in _addresses(service["spec"]):
            for port in service["spec"].get("ports") or ():
                transport = Transport(port.get("protocol", "TCP").lower())
                answering = Answering(_endpoints(own, port), _affinity_s(service["spec"]))
                found[ServicePort(address, transport, port["port"])] = answering
                if node and port.get("nodePort"):
                    found[ServicePort(node, transport, port["nodePort"])] = answering
    return found


def _addresses(spec: Object) -> Iterator[IPv4Address]:
    if spec.get("type") == "ExternalName":
        return
    for text in dict.fromkeys((spec.get("clusterIP"), *(spec.get("clusterIPs") or ()))):
        try:
            yield IPv4Address(text or "")
        except AddressValueError:
            # None, an empty text, `None` of a headless Service, or an IPv6 address.
            continue


def _affinity_s(spec: Object) -> int:
    if spec.get("sessionAffinity") != "ClientIP":
        return 0
    config = (spec.get("sessionAffinityConfig") or {}).get("clientIP") or {}
    return int(config.get("timeoutSeconds") or _AFFINITY_S)


def _endpoints(slices: Iterable[Object], port: Object) -> tuple[Endpoint, ...]:
    ready: set[Endpoint] = set()
    ending: set[Endpoint] = set()
    for piece in slices:
        for number in _numbers(piece, port):
            for one in piece.get("endpoints") or ():
                condition = one.get("conditions") or {}
                into = _chosen(condition, ready, ending)
                if into is not None:
                    into.update(Endpoint(IPv4Address(address), number) for address in one.get("addresses") or ())
    return tuple(sorted(ready or ending))


def _chosen(conditions: Object, ready: set[Endpoint], ending: set[Endpoint]) -> set[Endpoint] | None:
    # An unset condition counts as ready (discovery.k8s.io/v1, EndpointConditions); a ready endpoint is serving.
    is_ready = conditions.get("ready") is not False
    if is_ready:
        return ready
    return ending if conditions.get("terminating") and conditions.get("serving") else None


def _numbers(piece: Object, port: Object) -> Iterator[int]:
    """Yield a slice's port number of a Service's port, by the port's name."""
    for one in piece.get("ports") or ():
        same = (one.get("name") or "", one.get("protocol") or "TCP") == (
            port.get("name") or "",
            port.get("protocol", "TCP"),
        )
        if same and one.get("port"):
            yield int(one["port"])
