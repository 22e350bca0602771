"""Reconciles this node's pods of Flannel's network with etcd's state."""

from __future__ import annotations

import time
from collections.abc import Callable

from isthmus.clients.cni.attachments import Attachments
from isthmus.model.network import Attachment, Driver
from isthmus.network.drivers.attached import CHECK_S, AttachedConverger

__all__ = ["CHECK_S", "FlannelConverger"]


class FlannelConverger(AttachedConverger):
    """Carries out what is wanted of Flannel's network on this node."""

    def __init__(
        self,
        node: str,
        attachments: Attachments,
        publish: Callable[[Attachment], object],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(Driver.FLANNEL, node, attachments, publish, clock)
