"""Admission of RuntimeClasses.

The API server's admission has checked that the class exists and set the pod's overhead and node selector; the
handler is the node's. This node has one handler, which pods without a class use as well.
"""

from __future__ import annotations

from isthmus.kubelet.pods.unready import UnreadyError
from isthmus.model.pod_inputs import Object
from isthmus.podproto.reasons import Reason

HANDLER = "apptainer"


def check(name: str, found: Object | None) -> None:
    """Check that pods of a RuntimeClass can run here.

    Args:
        name: of the class.
        found: the class; None when there is none of this name.

    Raises:
        UnreadyError: they cannot; the pod waits, as with the upstream kubelet.
    """
    if found is None:
        raise UnreadyError(Reason.SANDBOX, f'runtimeclass.node.k8s.io "{name}" not found; create it')
    if found["handler"] != HANDLER:
        message = f'no runtime for "{found["handler"]}" is configured; use a RuntimeClass with handler {HANDLER}'
        raise UnreadyError(Reason.SANDBOX, message)
