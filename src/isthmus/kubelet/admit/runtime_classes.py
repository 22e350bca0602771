"""RuntimeClasses: which of them pods may name here.

The API server's admission has looked whether the class is there, and given the pod its overhead and node selector; the
handler is the node's affair. There is one, and pods without a class have it too.
"""

from __future__ import annotations

from isthmus.kubelet.pods.unready import UnreadyError
from isthmus.model.pod_inputs import Object
from isthmus.podproto.reasons import Reason

HANDLER = "apptainer"


def check(name: str, found: Object | None) -> None:
    """See whether pods of a RuntimeClass run here.

    Args:
        name: of the class.
        found: the class; None when there is none of this name.

    Raises:
        UnreadyError: they do not; the pod waits, as with the official kubelet.
    """
    if found is None:
        raise UnreadyError(Reason.SANDBOX, f'runtimeclass.node.k8s.io "{name}" not found; create it')
    if found["handler"] != HANDLER:
        message = f'no runtime for "{found["handler"]}" is configured; use a RuntimeClass with handler {HANDLER}'
        raise UnreadyError(Reason.SANDBOX, message)
