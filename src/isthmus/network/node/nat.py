"""Rules by which packets of pods leave with the node's own address; private and shared networks use them alike."""

from __future__ import annotations

# Protocols that have ports.
PORTED = "{ tcp, udp, udplite, dccp, sctp }"
PRIVILEGED = "0-1023"


def masquerade(whom: str) -> list[str]:
    """Return the rules by which some packets leave with the node's address, and never from a privileged port."""
    return [f"{whom} meta l4proto {PORTED} masquerade to :1024-65535", f"{whom} masquerade"]
