"""Which containers of a running pod have another image by now.

What runs is in the supervisor's report, so a kubelet that begins anew finds the same difference and says the same.
"""

from __future__ import annotations

from isthmus.model.pod_inputs import Object
from isthmus.podproto.plan import Plan

_KINDS = ("initContainers", "containers")
_LIVING = ("waiting", "running")


def changed(pod: Object, report: Object | None) -> dict[str, str]:
    """Return the containers that live and are not of the image that the pod says: name -> what it says.

    One that has ended is what it was. Supervisors of before the names of images were reported tell nothing.
    """
    if report is None or report.get("phase") in ("stopping", "ended") or pod["metadata"].get("deletionTimestamp"):
        return {}
    found = {}
    for one in (one for kind in _KINDS for one in pod["spec"].get(kind) or ()):
        told = report["containers"].get(one["name"]) or {}
        if told.get("state") in _LIVING and told.get("image_name") not in (None, one.get("image")):
            found[one["name"]] = one["image"]
    return found


def is_current(plan: Plan, pod: Object) -> bool:
    """Tell whether a plan, perhaps of a while ago, has the images that the pod says."""
    wanted = {one["name"]: one.get("image") for kind in _KINDS for one in pod["spec"].get(kind) or ()}
    return all(wanted.get(one.name) == one.image_name for one in (*plan.init, *plan.containers))
