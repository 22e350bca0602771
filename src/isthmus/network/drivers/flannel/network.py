"""Flannel's network on this node."""

from __future__ import annotations

from isthmus.clients.cni.attachments import Attachments, Ours
from isthmus.clients.cni.plugins import Plugins, parse_list
from isthmus.model.flannel import BRIDGE
from isthmus.model.network import Driver
from isthmus.network.dns.names import NodeNames
from isthmus.network.drivers.attached_network import AttachedNetwork
from isthmus.network.drivers.contract import SharedSettings
from isthmus.network.drivers.flannel.converge import FlannelConverger
from isthmus.network.drivers.flannel.definition import FlannelSettings
from isthmus.network.drivers.node import ECHO_S, NodeContext
from isthmus.network.node.converge import Converger
from isthmus.network.state.view import View


class FlannelNetwork(AttachedNetwork):
    """Flannel's network, with its bridge."""

    def __init__(
        self,
        node: str,
        view: View,
        flannel: FlannelConverger,
        converger: Converger,
        names: NodeNames,
        echo_s: float = ECHO_S,
    ) -> None:
        super().__init__(node, view, flannel, converger, names, echo_s, BRIDGE)


def connect(context: NodeContext, settings: SharedSettings | None) -> FlannelNetwork:
    """Return Flannel's network; pods that an earlier daemon made are known at once.

    Raises:
        CniError: the list of plugins cannot be used.
        OSError: it cannot be read.
    """
    assert isinstance(settings, FlannelSettings)  # noqa: S101 -- the registry's promise
    network = parse_list(settings.list.read_text(encoding="utf-8"), str(settings.list))
    attachments = Attachments(Driver.FLANNEL, Ours(network), Plugins(settings.plugins), settings.records)
    store, view = context.store, context.view
    flannel = FlannelConverger(context.node, attachments, lambda each: store.attach(each, view.snapshot))
    return FlannelNetwork(context.node, view, flannel, context.converger, context.names)
