"""Applies Services in a pod: its user's supervisor names them, the daemon writes the rules.

They stay when the daemon ends, and go with the namespace. At one time one user's request alone is carried out for them:
nft takes its while for a long table, and nobody keeps others waiting.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable
from ipaddress import IPv4Network
from pathlib import Path
from threading import Lock

from isthmus.clients import nftables
from isthmus.clients.nftables import NftError
from isthmus.model.services import Table
from isthmus.network import metrics
from isthmus.network.api.messages import ErrorCode
from isthmus.network.api.protocol import RequestError
from isthmus.network.drivers.node import NAMESPACES
from isthmus.network.services import reading as service_reading
from isthmus.network.services import rows as service_rows
from isthmus.network.services import rules as service_rules

_log = logging.getLogger(__name__)


class PodServices:
    """The Services of this node's pods.

    Args:
        services: all addresses of Services.
        folder: where namespaces have their names.
    """

    def __init__(self, services: IPv4Network, folder: Path = Path(NAMESPACES)) -> None:
        self._services = services
        self._folder = folder
        self._locks: defaultdict[int, Lock] = defaultdict(Lock)

    @property
    def addresses(self) -> IPv4Network:
        """All addresses of Services."""
        return self._services

    def table(self, namespace: str, uid: int) -> Table | None:
        """Return who answers where in a pod, as its rules have it; None for a pod without Services.

        Args:
            namespace: the pod's, by its name.
            uid: whose pod it is.

        Raises:
            NftError: nft failed, or its output has another form.
        """
        with self._locks[uid]:
            entries = nftables.listed(service_rules.FAMILY, service_rules.TABLE, self._folder / namespace)
        try:
            return None if entries is None else service_reading.table(entries)
        except (KeyError, TypeError, ValueError) as error:
            raise NftError(f"the listing of {service_rules.TABLE} by nft is in an unknown form: {error!r}") from error

    def set(self, namespace: str, uid: int, table: Table, own: Iterable[IPv4Network] = ()) -> None:
        """Replace a pod's Services.

        Args:
            namespace: the pod's, by its name.
            uid: whose pod it is.
            table: who answers where.
            own: the user's blocks: ports of nodes are at addresses of the user's control plane.

        Raises:
            RequestError: an address is neither a Service's nor the user's, or the kernel refused; nothing was changed.
        """
        if strange := service_rows.outside(table, (self._services, *own)):
            why = f"{strange[0].address} is no address of a Service (in {self._services}), nor one of the user's"
            raise RequestError(ErrorCode.INVALID, f"{why}; where an admin changed them, run playbooks/network.yml")
        path = self._folder / namespace
        with self._locks[uid]:
            try:
                kept = self._clients(path) if service_rules.has_affinity(table) else {}
                with metrics.NFT_S.labels(metrics.Rules.SERVICES).time():
                    nftables.apply(service_rules.text(table, self._services, kept), path)
            except NftError as error:
                _log.warning("services of %s: %s", namespace, error)
                raise RequestError(ErrorCode.FAILED, f"the rules of {namespace} could not be made") from error

    def clear(self, namespace: str, uid: int) -> None:
        """Let a pod have no Services.

        Raises:
            NftError: the kernel refused.
        """
        with self._locks[uid]:
            nftables.apply(service_rules.removal(), self._folder / namespace)

    @staticmethod
    def _clients(path: Path) -> service_rules.Kept:
        return nftables.timeouts(service_rules.FAMILY, service_rules.TABLE, path)
