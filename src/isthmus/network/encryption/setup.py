"""Begins to encrypt on this node, or ends it."""

from __future__ import annotations

from contextlib import closing
from ipaddress import IPv4Address

from isthmus.clients.wireguard.device import WireGuardError
from isthmus.clients.wireguard.way import Way
from isthmus.model.networks.wireguard import OVERHEAD
from isthmus.network.encryption.follow import Encryptor, Own
from isthmus.network.encryption.identity import Authorities, Identity
from isthmus.network.encryption.records import Records
from isthmus.network.encryption.settings import EncryptionSettings


def connect(
    settings: EncryptionSettings | None, node: str, address: IPv4Address, carried: int, records: Records
) -> Encryptor | None:
    """Return what encrypts packets to other nodes; without settings all of it is removed here.

    Nothing leaves in the clear any more, or again, when this returns or raises.

    Args:
        settings: the admin's; None for a cluster without.
        node: this node's name.
        address: its own.
        carried: MTU of the interface that has it.
        records: what nodes publish.

    Raises:
        NetlinkError: the kernel refused.
        EtcdError: etcd does not answer.
        WireGuardError: the node's certificate or its key is missing.
    """
    with closing(Way()) as way:
        if settings is None:
            way.remove()
            records.withdraw(node)
            return None
        way.shut()
    try:
        identity = Identity.read(settings.certificate, settings.key)
        authorities = Authorities.read(settings.ca)
    except (OSError, ValueError, TypeError) as error:
        raise WireGuardError(f"this node cannot say who it is: {error}; run playbooks/network.yml") from error
    own = Own(node, address, carried - OVERHEAD, identity)
    return Encryptor(own, settings, records, authorities, settings.tunnel(), Way())
