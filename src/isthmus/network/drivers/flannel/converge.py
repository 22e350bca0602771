"""Reconciles this node's pods of Flannel's network with etcd's state."""

from __future__ import annotations

from isthmus.model.network import Driver
from isthmus.network.drivers.attached import CHECK_S, AttachedConverger

__all__ = ["CHECK_S", "FlannelConverger"]


class FlannelConverger(AttachedConverger):
    """Carries out what is wanted of Flannel's network on this node."""

    driver = Driver.FLANNEL
