"""The request `trace`: the way from a job to a target. It is rare, so the daemon loads this with the first of them."""

from __future__ import annotations

import logging
import pwd
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from isthmus.clients.nftables import NftError
from isthmus.network.api import messages
from isthmus.network.api.messages import ErrorCode
from isthmus.network.api.protocol import RequestError
from isthmus.network.drivers.state import PlanError
from isthmus.network.node import rules
from isthmus.network.trace import points, way
from isthmus.network.trace.services import PodTable, ToService

if TYPE_CHECKING:
    from isthmus.network.api.operations import Dependencies

_log = logging.getLogger(__name__)


def answer(deps: Dependencies, request: messages.Trace, uid: int | None) -> Mapping[str, Any]:
    """Return the steps and the verdict.

    Args:
        deps: of this node's daemon.
        request: from where and to where.
        uid: of the user that asks: only jobs of this user are seen; None: root.

    Raises:
        RequestError: source or target is nothing that this user may see.
    """
    state = points.visible(deps.view.snapshot.state, uid)
    addresses = deps.services.addresses
    find = points.Finder(state, deps.rules, deps.domain, uid, lambda name: pwd.getpwnam(name).pw_uid, addresses)
    try:
        source, target = find.source(request.source), find.target(request.target)
        over = way.OverIPv6.of(deps.rules) if source.is_ipv6 or target.is_ipv6 else None
        probe = way.Probe(rules.Protocol(request.protocol), request.port, over)
        if target.kind is points.Kind.SERVICE:
            to_service = ToService(state, deps.rules, lambda address: find.target(str(address)))
            steps = to_service.trace(source, target, probe, _services(deps, source))
        else:
            steps = way.trace(state, deps.rules, source, target, probe)
    except (points.PointError, PlanError) as error:
        raise RequestError(ErrorCode.NOT_FOUND, str(error)) from error
    steps = [*way.failures(deps.node, deps.converger.last.errors, steps, show_all=uid is None), *steps]
    return {
        "source": source.text,
        "target": target.text,
        "verdict": way.verdict(steps),
        "steps": [asdict(step) for step in steps],
    }


def _services(deps: Dependencies, source: points.Point) -> PodTable:
    """Return what this node knows of a pod's Services: of its own pods, what their rules say."""
    pod = deps.converger.last.plan.pods.get(source.job)
    if source.node != deps.node or pod is None or pod.uid != source.uid:
        return PodTable(is_known=False)
    try:
        return PodTable(is_known=True, table=deps.services.table(pod.namespace, pod.uid))
    except NftError as error:
        _log.warning("services of %s: %s", pod.namespace, error)
        return PodTable(is_known=False)
