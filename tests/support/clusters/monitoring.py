"""Prometheus and Alertmanager of a live site, asked on its controller with the admin's password."""

from __future__ import annotations

import json
import shlex
from typing import Any
from urllib.parse import urlencode

from tests.support.clusters.cluster import Node

FOLDER = "/etc/isthmus/monitoring"
_ASK = """
import base64, ssl, sys, urllib.request
password = open("/etc/isthmus/monitoring/password").read().strip()
word = base64.b64encode(f"admin:{password}".encode()).decode()
request = urllib.request.Request(sys.argv[1], headers={"Authorization": f"Basic {word}"})
context = ssl.create_default_context(cafile="/etc/isthmus/ca.crt")
sys.stdout.write(urllib.request.urlopen(request, context=context, timeout=30).read().decode())
"""


def page(controller: Node, path: str, port: int = 9090) -> str:
    """Return what is served at a path."""
    return controller.output(f"python3 -c {shlex.quote(_ASK)} {shlex.quote(f'https://localhost:{port}{path}')}")


def query(controller: Node, expression: str) -> dict[tuple[str, ...], float]:
    """Return what Prometheus answers: values of labels but the name, in the labels' order -> figure."""
    found: Any = json.loads(page(controller, f"/api/v1/query?{urlencode({'query': expression})}"))
    return {
        tuple(value for name, value in sorted(each["metric"].items()) if name != "__name__"): float(each["value"][1])
        for each in found["data"]["result"]
    }


def one(controller: Node, expression: str) -> float:
    """Return the one figure of an answer."""
    (figure,) = query(controller, expression).values()
    return figure


def alerts(controller: Node) -> set[tuple[str, str]]:
    """Return the alerts that Alertmanager has: name and host of each."""
    found = json.loads(page(controller, "/api/v2/alerts?active=true", 9093))
    return {(each["labels"]["alertname"], each["labels"].get("instance", "")) for each in found}
