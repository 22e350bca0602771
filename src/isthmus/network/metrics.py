"""What networkd measures of itself; `isthmus network metrics` prints it.

On the daemon's own socket and not on a port: a page of root's daemon that takes a thread for each connection would be a
door for every process of the node. isthmus-exporter passes it on to Prometheus.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from prometheus_client.core import CounterMetricFamily

from isthmus.network.node.refused import Why
from isthmus.support import metrics

_BOUNDS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
REGISTRY = metrics.registry()


class Rules(StrEnum):
    """Which rules nft carries out."""

    FILTER = "filter"
    SERVICES = "services"


NFT_S = metrics.histogram(
    REGISTRY,
    "isthmus_networkd_nft_seconds",
    "How long nft took to carry out a change: of the node's filter, of a pod's Services.",
    _BOUNDS_S,
    Rules,
)
CONVERGE_S = metrics.histogram(
    REGISTRY,
    "isthmus_networkd_converge_seconds",
    "How long a pass took that makes the node as etcd has it, rules and names included.",
    _BOUNDS_S,
)


def page(refused: Mapping[Why, int]) -> str:
    """Return all of it.

    Args:
        refused: packets, by why.
    """
    family = CounterMetricFamily(
        "isthmus_networkd_refused_packets",
        "Packets that this node's filter refused: of host processes to pods, of pods to hosts, of pods to other users "
        "and outside, from outside to pods, forged ones, and beyond the bounds of an account.",
        labels=["why"],
    )
    for why, packets in refused.items():
        family.add_metric([why], packets)
    return metrics.text(REGISTRY) + metrics.text(metrics.Families([family]))
