"""reference/metrics.md: what Prometheus can scrape, from what the programs answer to a first question."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from prometheus_client.core import Metric
from prometheus_client.parser import text_string_to_metric_families

from handbook.markdown import code, page, table
from isthmus.jobs import figures, users
from isthmus.kubelet import metrics as kubelet
from isthmus.kubelet.api import stats
from isthmus.model.job_feed import Figures as Reported
from isthmus.model.job_feed import Phase, Stage, Starts
from isthmus.monitoring import checks
from isthmus.monitoring.parts import dns, network, passed, slurm
from isthmus.monitoring.parts import node as host
from isthmus.monitoring.parts.figures import UP, UP_MEANING, gauges
from isthmus.monitoring.parts.registry import answering
from isthmus.network import metrics as networkd
from isthmus.network.node.refused import Why
from isthmus.registry.figures import Figures
from isthmus.registry.room import Disk
from isthmus.support import metrics

_USAGE: dict[str, Any] = {
    "cpu": {"usageCoreNanoSeconds": 0},
    "memory": {"usageBytes": 0, "workingSetBytes": 0},
    "startTime": "1970-01-01T00:00:00+00:00",
}
_REPORTED = Reported({Phase.RUNNING: 1}, {Stage.QUEUE: Starts(1, 1)})
_REFERENCE = {"name": "web", "namespace": "default", "uid": "1"}
# What the exporter gets of a cluster with one of each.
_SDIAG = "".join(
    f"{section}:\n" * bool(section) + "".join(f"\t{line}: 0\n" for line in lines)
    for section, lines in slurm.SDIAG.items()
)
_NETWORK = {
    **{"revision": 1, "pods": 1, "legs": 1, "errors": {}},
    "figures": {
        "cluster": dict.fromkeys(network.CLUSTER, 1),
        "preparations": {"buckets": [("+Inf", 1)], "sum_s": 1, "failures": 0},
    },
}
_SUMMARY = {"node": _USAGE, "pods": [{"podRef": _REFERENCE, "containers": [{"name": "web", **_USAGE}], **_USAGE}]}


def text(_root: Path) -> str:
    """Return the page."""
    return page(
        "# Metrics",
        "What Prometheus can scrape, made from what the programs answer. Of a histogram there are `_bucket`, `_sum` and"
        " `_count`.",
        "## isthmus-jobsd",
        "On the controller, `http://127.0.0.1:7445/metrics` (`kubernetes_jobs_metrics_port`), open to every process of"
        " that host and to nobody else.",
        described(metrics.text(figures.HubMetrics(_hub()))),
        "What users' kubelets report, unless their users say no, is in a file that isthmus-exporter reads:",
        described(metrics.text(metrics.Families(users.families({0: _REPORTED}, str)))),
        "## isthmus-exporter",
        "On every host, as files for node exporter, which Prometheus alone may ask"
        " ([Monitoring](../admins/monitoring.md)). Slurm's are those of the controller, under the names of slurmctld's"
        " own metrics.",
        described(metrics.text(metrics.Families(_exporter()))),
        "etcd's and isthmus-jobsd's are passed on as they have them: "
        + ", ".join(code(f"{name}*") for name in passed.ETCD + passed.JOBSD),
        "Of the node's CoreDNS, sums over all users: " + ", ".join(code(f"{name}*") for name in dns.NAMES),
        "## isthmus-tokend",
        "Of the cluster's registry; isthmus-exporter on the controller passes them on.",
        described(Figures().page(Disk(1, 1), 1)),
        "## The kubelet of a user",
        "At the kubelet's port, for whom the user's API server lets:"
        " `kubectl get --raw /api/v1/nodes/slurm/proxy/metrics`.",
        described(kubelet.page([{"status": {"phase": "Running"}}])),
        "## /metrics/resource",
        "What `kubectl top` and autoscalers read.",
        described(stats.resources(_SUMMARY)),
        "## /metrics/cadvisor",
        "Under cAdvisor's names, as dashboards know them; what an ordinary user cannot see is left out.",
        described(stats.cadvisor(_SUMMARY, [])),
        "## isthmus-networkd",
        "isthmus-exporter passes them on; as root, `isthmus network metrics` prints them.",
        described(networkd.page(dict.fromkeys(Why, 0))),
    )


def _exporter() -> Iterator[Metric]:
    yield gauges(UP, UP_MEANING, "part", {"node": 1})
    yield host.problems([(checks.CHECKS[0], 0)])
    yield host.running({"slurmd": True})
    yield host.ends({Path("etcd.crt"): datetime.now(UTC)})
    yield from network.read(_NETWORK)
    yield from answering(is_up=True, took_s=1)
    yield from slurm.jobs([("RUNNING", "cpu", "physics", "1", "1")])
    yield from slurm.nodes("cpu|c1|idle|0/1/0/1|1")
    yield from slurm.scheduler(_SDIAG)


def _hub() -> Any:
    return SimpleNamespace(size=(1, 1), counts=Counter[str](), age_s=1.0)


def described(answer: str) -> str:
    """Return a table of what an answer has, in its own words.

    Raises:
        ValueError: a metric does not say what it is.
    """
    rows = []
    for family in sorted(text_string_to_metric_families(answer), key=lambda family: family.name):
        if not family.documentation:
            raise ValueError(f"metric {family.name} does not say what it is")
        labels = dict.fromkeys(name for sample in family.samples for name in sample.labels if name != "le")
        total = "_total" if family.type == "counter" else ""
        rows.append((code(family.name + total), family.type, ", ".join(labels), family.documentation))
    return table(("metric", "type", "labels", "meaning"), rows)
