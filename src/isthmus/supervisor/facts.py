"""Facts of the node: job, host name, addresses."""

from __future__ import annotations

import json
import os
import socket
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from isthmus.podproto import folder as names


class Facts(NamedTuple):
    """Facts that only this node knows.

    Attributes:
        job: Slurm's number.
        node: Slurm's name.
        address: the pod's.
        host_address: the node's.
    """

    job: str
    node: str
    address: str
    host_address: str

    @classmethod
    def here(cls, folder: Path) -> Facts:
        """Gather the facts; the pod's address is the source address of the route to the kubelet."""
        node = os.environ.get("SLURMD_NODENAME") or socket.gethostname()
        address = _address_towards(folder)
        host = address
        with suppress(OSError):
            host = socket.gethostbyname(node)
        return cls(os.environ.get("SLURM_JOB_ID", ""), node, address, address if host.startswith("127.") else host)

    def of_pod(self, uid: str) -> dict[str, Any]:
        """Return them as fields of the hello and the report."""
        return {
            "uid": uid,
            "job": self.job,
            "node": self.node,
            "addresses": [self.address],
            "host_address": self.host_address,
        }

    def variables(self) -> dict[str, str]:
        """Return them as values of the downward API."""
        own = {"pod_ip": self.address, "pod_ips": self.address}
        return {**own, "host_ip": self.host_address, "host_ips": self.host_address}


def _address_towards(folder: Path) -> str:
    with suppress(OSError, ValueError, KeyError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        where = json.loads((folder / names.ADDRESS).read_text(encoding="utf-8"))
        # No packet is sent: the kernel only selects a route.
        probe.connect((where["address"], where["port"]))
        return str(probe.getsockname()[0])
    return "127.0.0.1"
