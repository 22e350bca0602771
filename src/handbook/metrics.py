"""reference/metrics.md: what Prometheus can scrape, from what the programs answer to a first question."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from handbook.markdown import code, page, table
from handbook.source import constant, modules
from isthmus.jobs import figures
from isthmus.kubelet.api import stats

_SAMPLE = re.compile(r"^([a-z_]+)(?:\{([^}]*)\})? \S+$", re.MULTILINE)
_LABEL = re.compile(r'([a-z]+)="')
JOBSD = {
    "isthmus_jobsd_accounts": "accounts that have a kubelet connected",
    "isthmus_jobsd_failures_total": "questions that Slurm did not answer",
    "isthmus_jobsd_kubelets": "kubelets that are connected",
    "isthmus_jobsd_questions_total": "questions that Slurm was asked, by program",
    "isthmus_jobsd_refused_total": "connections whose credential was refused",
    "isthmus_jobsd_slow_total": "kubelets that did not read in time, and were dropped",
    "isthmus_jobsd_surplus_total": "connections beyond what an address or an account may have",
    "isthmus_jobsd_turned_away_total": "kubelets that were turned away, as Slurm hides jobs from jobsd",
    "isthmus_jobsd_view_age_seconds": "age of what is known of Slurm's jobs",
}
KUBELET = {
    "isthmus_kubelet_cancellations_total": "jobs that the kubelet cancelled",
    "isthmus_kubelet_feed_changes_total": "changes that isthmus-jobsd sent",
    "isthmus_kubelet_feed_distrusts_total": "times that isthmus-jobsd was not used, as Slurm said otherwise",
    "isthmus_kubelet_pods": "pods, by phase",
    "isthmus_kubelet_slurm_offers_total": "questions to Slurm for partitions, QOS and limits",
    "isthmus_kubelet_slurm_questions_total": "questions to Slurm for the pods' jobs",
    "isthmus_kubelet_submissions_total": "jobs that the kubelet submitted",
    "process_cpu_seconds_total": "CPU time of the kubelet",
    "process_max_resident_memory_bytes": "most memory that the kubelet had",
    "process_uptime_seconds": "time since the kubelet started",
}
RESOURCE = {
    "container_cpu_usage_seconds_total": "CPU time of a container",
    "container_memory_working_set_bytes": "memory of a container",
    "node_cpu_usage_seconds_total": "CPU time of all pods",
    "node_memory_working_set_bytes": "memory of all pods",
    "pod_cpu_usage_seconds_total": "CPU time of a pod",
    "pod_memory_working_set_bytes": "memory of a pod",
    "scrape_error": "0",
}
CADVISOR = {
    "container_cpu_usage_seconds_total": "CPU time of a container",
    "container_memory_usage_bytes": "memory of a container",
    "container_memory_working_set_bytes": "the same",
    "container_start_time_seconds": "when the container started, seconds since 1970",
}
_USAGE: dict[str, Any] = {
    "cpu": {"usageCoreNanoSeconds": 0},
    "memory": {"usageBytes": 0, "workingSetBytes": 0},
    "startTime": "1970-01-01T00:00:00+00:00",
}
_REFERENCE = {"name": "web", "namespace": "default", "uid": "1"}
_SUMMARY = {"node": _USAGE, "pods": [{"podRef": _REFERENCE, "containers": [{"name": "web", **_USAGE}], **_USAGE}]}


def text(root: Path) -> str:
    """Return the page."""
    return page(
        "# Metrics",
        "What Prometheus can scrape, made from what the programs answer.",
        "## isthmus-jobsd",
        "On the controller, `http://127.0.0.1:7445/metrics` (`kubernetes_jobs_metrics_port`), open to every process of"
        " that host and to nobody else.",
        _table(JOBSD, figures.metrics(_hub())),
        "## The kubelet of a user",
        "At the kubelet's port, for whom the user's API server lets:"
        " `kubectl get --raw /api/v1/nodes/slurm/proxy/metrics`.",
        _table(KUBELET, stats.own([{"status": {"phase": "Running"}}]) + "\n".join(_counted(root))),
        "## /metrics/resource",
        "What `kubectl top` and autoscalers read.",
        _table(RESOURCE, stats.resources(_SUMMARY)),
        "## /metrics/cadvisor",
        "Under cAdvisor's names, as dashboards know them; what an ordinary user cannot see is left out.",
        _table(CADVISOR, stats.cadvisor(_SUMMARY, [])),
    )


def _hub() -> Any:
    return SimpleNamespace(size=(1, 1), counts=Counter[str](), age_s=1.0)


def _counted(root: Path) -> Iterator[str]:
    """Give the kubelet's counters, which appear when they have counted something."""
    for _, module in modules(root, "kubelet"):
        for node in ast.walk(module):
            if isinstance(node, ast.Subscript) and ast.unparse(node.value).endswith("COUNTS") and constant(node.slice):
                yield f"isthmus_kubelet_{constant(node.slice)}_total 0"


def _table(meanings: dict[str, str], answer: str) -> str:
    found = {name: ", ".join(_LABEL.findall(labels)) for name, labels in _SAMPLE.findall(answer)}
    if set(found) != set(meanings):
        raise KeyError(f"metrics {sorted(set(found) ^ set(meanings))}: explain them in {__name__}, or remove them")
    rows = ((code(name), found[name], said) for name, said in sorted(meanings.items()))
    return table(("metric", "labels", "meaning"), rows)
