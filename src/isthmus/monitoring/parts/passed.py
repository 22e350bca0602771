"""Figures that daemons of this host offer on the loopback: some of them are passed on, the rest is left there.

etcd's, for one, are two thousand lines, and open to every process of the host; passed on is what rules, the status
page and dashboards use.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from prometheus_client.core import Metric
from prometheus_client.parser import text_string_to_metric_families

from isthmus.clients import prometheus

ETCD = (
    "etcd_server_has_leader",
    "etcd_server_is_leader",
    "etcd_server_leader_changes_seen_total",
    "etcd_server_proposals_pending",
    "etcd_server_quota_backend_bytes",
    "etcd_mvcc_db_total_size_in_bytes",
    "etcd_mvcc_db_total_size_in_use_in_bytes",
    "etcd_disk_wal_fsync_duration_seconds",
    "etcd_disk_backend_commit_duration_seconds",
)
# All of it.
JOBSD = ("isthmus_jobsd_",)


@dataclass(frozen=True, slots=True)
class Source:
    """A daemon of this host.

    Attributes:
        url: of its figures, without any proxy.
        names: what the names of those that are passed on begin with.
        summed: labels that are left out, and over whose values is added up.
    """

    url: str
    names: tuple[str, ...]
    summed: frozenset[str] = frozenset()

    def collect(self) -> Iterator[Metric]:
        """Ask it.

        Raises:
            OSError: it does not answer.
            ValueError: its answer is none in Prometheus' format.
        """
        for family in text_string_to_metric_families(chosen(prometheus.figures(self.url), self.names)):
            yield added(family, self.summed) if self.summed else family


def added(family: Metric, labels: frozenset[str]) -> Metric:
    """Return figures without some of their labels, those that are the same then added up."""
    sums: dict[tuple[str, tuple[tuple[str, str], ...]], float] = defaultdict(float)
    for sample in family.samples:
        kept = tuple((name, value) for name, value in sample.labels.items() if name not in labels)
        sums[sample.name, kept] += sample.value
    made = Metric(family.name, family.documentation, family.type)
    for (name, kept), value in sums.items():
        made.add_sample(name, dict(kept), value)
    return made


def chosen(text: str, names: tuple[str, ...]) -> str:
    """Return the lines of figures with such names, and what is said of those."""
    kept = (line for line in text.splitlines() if _name(line).startswith(names))
    return "".join(f"{line}\n" for line in kept)


def _name(line: str) -> str:
    return line.split(" ", 3)[2] if line.startswith(("# HELP ", "# TYPE ")) else line
