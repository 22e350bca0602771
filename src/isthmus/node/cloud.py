"""Tokens of nodes that Slurm starts: made by slurmctld's user, which is not root, in a folder of its own.

They let in a node of the cloud's by its name, once, for minutes; isthmus-joind trusts nothing else of that folder
(isthmus.node.service.records). A token's file also says that a start of its node is under way.
"""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Iterator
from pathlib import Path

from isthmus.node import certificates, tokens
from isthmus.node.service.records import CA, STATE
from isthmus.support import durable

FOLDER = STATE / "cloud"


class CloudTokens:
    """All of them.

    Args:
        folder: where they are; its group is the service's.
        ca: certificate of the cluster's CA.
    """

    def __init__(self, folder: Path = FOLDER, ca: Path = CA) -> None:
        self._folder, self._ca = folder, ca

    def make(self, name: str, valid_s: float) -> str:
        """Make one that counts once, for this node, also where another machine had its name before."""
        token, record = tokens.create(
            certificates.pin(self._ca.read_bytes()),
            names=[name],
            uses=1,
            expires=time.time() + valid_s,
            replace=True,
        )
        # The folder's set-group-id bit gives it to the service's group.
        durable.write(self._folder / f"{record.id}.json", json.dumps(tokens.written(record)), mode=0o640)
        return str(token)

    def starting(self) -> frozenset[str]:
        """Return nodes whose token still counts."""
        now = time.time()
        return frozenset(name for _, record in self._all() if record.expires > now for name in record.names)

    def drop(self, names: Collection[str]) -> None:
        """Remove tokens of these nodes, and those that count no more."""
        now = time.time()
        for path, record in self._all():
            if record.expires <= now or set(record.names) & set(names):
                path.unlink(missing_ok=True)

    def _all(self) -> Iterator[tuple[Path, tokens.Record]]:
        for path in sorted(self._folder.glob("*.json")):
            yield path, tokens.read(json.loads(path.read_bytes()))
