"""Containers of a running pod whose image was changed in the spec.

The observed images are in the supervisor's report, so a restarted kubelet finds the same difference.
"""

from __future__ import annotations

from isthmus.model.pod_inputs import Object
from isthmus.podproto.plan import Plan

_KINDS = ("initContainers", "containers")
_LIVING = ("waiting", "running")


def changed(pod: Object, report: Object | None) -> dict[str, str]:
    """Return the living containers whose image differs from the spec: name -> desired image.

    An ended container keeps its image. Supervisors of releases that do not report image names are left alone.
    """
    if report is None or report.get("phase") in ("stopping", "ended") or pod["metadata"].get("deletionTimestamp"):
        return {}
    found = {}
    for one in (one for kind in _KINDS for one in pod["spec"].get(kind) or ()):
        reported = report["containers"].get(one["name"]) or {}
        if reported.get("state") in _LIVING and reported.get("image_name") not in (None, one.get("image")):
            found[one["name"]] = one["image"]
    return found


def is_current(plan: Plan, pod: Object) -> bool:
    """Return whether a plan, which may be old, has the images of the spec."""
    wanted = {one["name"]: one.get("image") for kind in _KINDS for one in pod["spec"].get(kind) or ()}
    return all(wanted.get(one.name) == one.image_name for one in (*plan.init, *plan.containers))
