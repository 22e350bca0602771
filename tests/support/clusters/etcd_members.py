"""Members of the site's etcd, as their hosts see them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.clusters.cluster import Cluster, Node

# With fewer none may be away.
LEAST = 3


def members(cluster: Cluster) -> list[Node]:
    """Return the hosts with a member; the test is skipped where none of them may be away."""
    found = cluster.part("etcd")
    if len(found) < LEAST:
        pytest.skip(f"etcd has fewer than {LEAST} members here")
    return found


def status(member: Node) -> dict[str, Any]:
    """Return what a member says of itself; `--cluster` would say nothing of any while one is lost."""
    (shown,) = json.loads(member.output("isthmus-etcdctl endpoint status --write-out=json"))
    found: dict[str, Any] = shown["Status"]
    return found
