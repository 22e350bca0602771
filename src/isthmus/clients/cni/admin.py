"""Pods that an administrator's CNI plugins connect: the list is read for each, and no answer is taken on trust."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from isthmus.clients.cni import results
from isthmus.clients.cni.attachments import Attachments
from isthmus.clients.cni.bounded import run_bounded
from isthmus.clients.cni.lists import AdminList
from isthmus.clients.cni.plugins import NetworkList, Plugins, Result
from isthmus.clients.cni.results import Expected, Place
from isthmus.clients.netlink import namespaces
from isthmus.clients.netlink.observe import look
from isthmus.clients.netlink.wire import Wire
from isthmus.model.network import Driver


@dataclass(frozen=True, slots=True)
class Site:
    """What the site's pods are connected with; see `attachments.Means`.

    Attributes:
        admin: the list.
        expected: what answers must agree with.
    """

    admin: AdminList
    expected: Expected
    is_noted_first: bool = True

    def list(self) -> NetworkList:
        """See Means."""
        return self.admin.read()

    def place(self, result: Result) -> Place:
        """See Means; looks at the thread's network namespace."""
        with closing(Wire()) as wire:
            seen = look(wire)
        return results.place(result, self.expected, seen)


def attachments(site: Site, records: Path, folder: Path = namespaces.RUN) -> Attachments:
    """Return what makes and finds the pods.

    Args:
        site: what they are connected with.
        records: folder of ours that outlives the machine, as what plugins remember may.
        folder: where namespaces have their names.
    """
    plugins = Plugins(site.admin.plugins, runner=run_bounded)
    return Attachments(Driver.CNI, site, plugins, records, folder)
