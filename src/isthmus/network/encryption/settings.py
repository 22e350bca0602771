"""The part of /etc/isthmus/network.json about encryption between nodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from isthmus.clients.wireguard.device import Tunnel
from isthmus.clients.wireguard.kernel import KernelTunnel
from isthmus.clients.wireguard.program import ProgramTunnel
from isthmus.model.networks.wireguard import PORT, Encryption, Program

_DAY_S = 86_400


@dataclass(frozen=True, slots=True)
class EncryptionSettings:
    """What the admin decides; the same on all nodes.

    Attributes:
        port: UDP, where nodes are called.
        program: what runs WireGuard here.
        key_s: after this a key is replaced; 0 for never.
        ca: certificates of the cluster's CA.
        certificate: this node's, by name and address.
        key: of that certificate.
    """

    port: int = PORT
    program: Program = Program.KERNEL
    key_s: float = 0
    ca: Path = Path("/etc/isthmus/ca.crt")
    certificate: Path = Path("/etc/isthmus/tls/wireguard.crt")
    key: Path = Path("/etc/isthmus/tls/wireguard.key")

    def tunnel(self) -> Tunnel:
        """Return this node's device."""
        return KernelTunnel() if self.program is Program.KERNEL else ProgramTunnel()


def read(raw: Mapping[str, Any] | None) -> EncryptionSettings | None:
    """Read them; empty or absent where packets are not encrypted.

    Raises:
        KeyError: a field is missing.
        ValueError: a field has no value that can be.
    """
    if not raw or Encryption(raw["kind"]) is Encryption.NONE:
        return None
    return EncryptionSettings(int(raw["port"]), Program(raw["program"]), float(raw["key_days"]) * _DAY_S)
