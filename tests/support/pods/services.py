"""Services and EndpointSlices as the API server writes them, and tables made of them."""

from __future__ import annotations

from ipaddress import IPv4Address
from typing import Any

from isthmus.model.services import Answering, Endpoint, ServicePort, Transport


def place(address: str = "10.96.0.9", port: int = 80, transport: Transport = Transport.TCP) -> ServicePort:
    """Return a Service's port."""
    return ServicePort(IPv4Address(address), transport, port)


def answering(*endpoints: str, affinity_s: int = 0) -> Answering:
    """Return who answers, each `address:port`."""
    pairs = (endpoint.split(":") for endpoint in endpoints)
    return Answering(tuple(Endpoint(IPv4Address(address), int(port)) for address, port in pairs), affinity_s)


def service(name: str = "web", address: str = "10.96.0.9", *ports: dict[str, Any], **spec: Any) -> dict[str, Any]:
    """Return a Service."""
    given = [*ports] or [{"port": 80, "protocol": "TCP", "targetPort": 8080}]
    return {
        "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}"},
        "spec": {"type": "ClusterIP", "clusterIP": address, "clusterIPs": [address], "ports": given, **spec},
    }


def endpoint(address: str, **conditions: bool) -> dict[str, Any]:
    """Return an endpoint; ready where nothing is said."""
    return {"addresses": [address], "conditions": conditions}


def slice_of(name: str, *endpoints: dict[str, Any], ports: Any = ({"port": 8080},), **fields: Any) -> dict[str, Any]:
    """Return an EndpointSlice of a Service."""
    labels = {"kubernetes.io/service-name": name}
    return {
        "metadata": {"name": f"{name}-1", "namespace": "default", "uid": f"uid-{name}-1", "labels": labels},
        "addressType": "IPv4",
        "ports": [{"name": "", "protocol": "TCP", **port} for port in ports],
        "endpoints": [*endpoints],
        **fields,
    }
