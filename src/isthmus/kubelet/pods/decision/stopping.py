"""Grace periods of pods that are being stopped."""

from __future__ import annotations

from datetime import datetime

from isthmus.model.pod_inputs import Object

_DEFAULT_S = 30


def given_s(pod: Object) -> int:
    """Return the whole grace period, seconds."""
    own = pod["spec"].get("terminationGracePeriodSeconds", _DEFAULT_S)
    return int(pod["metadata"].get("deletionGracePeriodSeconds", own))


def grace_s(pod: Object, now: datetime) -> int:
    """Return the grace period, seconds; the rest of it if the deletion has begun."""
    ends = pod["metadata"].get("deletionTimestamp")
    if not ends:
        return given_s(pod)
    left_s = (datetime.fromisoformat(ends) - now).total_seconds()
    return max(0, min(given_s(pod), round(left_s)))
