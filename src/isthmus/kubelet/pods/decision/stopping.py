"""How long a pod that is to stop may take."""

from __future__ import annotations

from datetime import datetime

from isthmus.model.pod_inputs import Object

_DEFAULT_S = 30


def given_s(pod: Object) -> int:
    """Return how many seconds a pod was given."""
    own = pod["spec"].get("terminationGracePeriodSeconds", _DEFAULT_S)
    return int(pod["metadata"].get("deletionGracePeriodSeconds", own))


def grace_s(pod: Object, now: datetime) -> int:
    """Return how many seconds a pod has; of a deletion that has begun, what is left."""
    ends = pod["metadata"].get("deletionTimestamp")
    if not ends:
        return given_s(pod)
    left_s = (datetime.fromisoformat(ends) - now).total_seconds()
    return max(0, min(given_s(pod), round(left_s)))
