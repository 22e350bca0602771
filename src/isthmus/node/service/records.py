"""The controller's files about joining.

Three owners: what the admin says (manifest, authority, tokens, who has left) is root's, and the service only reads it.
Who has joined is the service's own, and tokens of nodes that Slurm starts are slurmctld's user's; root's commands read
both without following links, and such a token counts for names that root has named, and for nothing else.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from isthmus.node import tokens
from isthmus.node.certificates import Authority
from isthmus.node.errors import JoinError
from isthmus.node.manifest import Manifest, ManifestError, parse
from isthmus.node.service.admission import Joined
from isthmus.support import durable

SETTINGS = Path("/etc/isthmus/join")
STATE = Path("/var/lib/isthmus-join")
CA = Path("/etc/isthmus/ca.crt")
# Of files that the service owns and root reads.
_LARGEST = 64 << 20

Used = dict[str, frozenset[tuple[str, str]]]


class Records:
    """All of them.

    Args:
        settings: folder of what role join writes.
        state: folder of tokens, and of who has joined.
    """

    def __init__(self, settings: Path = SETTINGS, state: Path = STATE) -> None:
        self.settings, self.tokens, self.own, self.left = settings, state / "tokens", state / "nodes", state / "left"
        self.cloud = state / "cloud"

    def manifest(self) -> Manifest:
        """What a node is given.

        Raises:
            JoinError: there is none that can be read.
        """
        path = self.settings / "compute.json"
        try:
            return parse(path.read_bytes())
        except FileNotFoundError as error:
            raise JoinError(f"{path} is missing; set join_service and run playbooks/join.yml") from error
        except PermissionError as error:
            raise JoinError(f"{path} is root's; run this as root, on the controller") from error
        except ManifestError as error:
            raise JoinError(f"{path}: {error}") from error

    def authority(self) -> Authority:
        """Who signs nodes' certificates."""
        return Authority((self.settings / "nodes.key").read_bytes(), (self.settings / "nodes.crt").read_bytes())

    def token(self, name: str) -> dict[str, tokens.Record]:
        """The record of one token, by its id; none where there is none."""
        try:
            return {name: tokens.read(json.loads((self.tokens / f"{name}.json").read_bytes()))}
        except FileNotFoundError:
            return self._cloud_token(name)
        except (OSError, ValueError, KeyError, TypeError):
            return {}

    def _cloud_token(self, name: str) -> dict[str, tokens.Record]:
        try:
            record = tokens.read(json.loads(_read(self.cloud / f"{name}.json")))
            allowed = set(json.loads((self.settings / "cloud.json").read_bytes()))
        except (OSError, ValueError, KeyError, TypeError):
            return {}
        few = record.uses == 1 and len(record.names) == 1 and not record.kind
        return {name: record} if few and record.id == name and allowed.issuperset(record.names) else {}

    def all_tokens(self) -> list[tokens.Record]:
        """Every token, the one that ends first in front."""
        paths = [path for folder in (self.tokens, self.cloud) for path in folder.glob("*.json")]
        found = [record for path in paths for record in self.token(path.stem).values()]
        return sorted(found, key=lambda record: record.expires)

    def keep_token(self, record: tokens.Record) -> None:
        """Write a token's record, for root and the service."""
        path = self.tokens / f"{record.id}.json"
        durable.write(path, json.dumps(tokens.written(record)), mode=0o600)
        os.chown(path, -1, self.tokens.stat().st_gid)
        path.chmod(0o640)

    def remove_token(self, name: str) -> bool:
        """Forget a token; return whether there was one."""
        for path in (self.tokens / f"{name}.json", self.cloud / f"{name}.json"):
            with suppress(FileNotFoundError):
                path.unlink()
                durable.sync(path.parent)
                return True
        return False

    def joined(self) -> tuple[dict[str, Joined], Used]:
        """Who has joined by which name and not left since, and who has used which token.

        Raises:
            JoinError: the file is damaged: nobody is let in, for anybody might take another's name.
        """
        try:
            document = self._own()
            every = {name: Joined(**each) for name, each in document["names"].items()}
            names = {name: each for name, each in every.items() if each.time > self._left_at(name)}
            used = {name: frozenset((str(a), str(b)) for a, b in each) for name, each in document["used"].items()}
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise JoinError(
                f"{self._path()} cannot be read ({error}); remove it, and nodes join by new tokens"
            ) from error
        return names, used

    def keep_joined(self, joined: Mapping[str, Joined], used: Mapping[str, frozenset[tuple[str, str]]]) -> None:
        """Write down who has joined, before anything is given out."""
        document = {
            "schema": 1,
            "names": {name: asdict(each) for name, each in joined.items()},
            "used": {name: sorted(each) for name, each in used.items()},
        }
        durable.write(self._path(), json.dumps(document), mode=0o600)

    def forget(self, name: str) -> None:
        """Let another machine join under a name whose node has left."""
        path = self.left / name
        path.touch(mode=0o644)
        os.utime(path)

    def _left_at(self, name: str) -> float:
        try:
            return (self.left / name).stat().st_mtime
        except OSError:
            return 0.0

    def _path(self) -> Path:
        return self.own / "joined.json"

    def _own(self) -> Any:
        try:
            return json.loads(_read(self._path()))
        except FileNotFoundError:
            return {"names": {}, "used": {}}


def _read(path: Path) -> bytes:
    # Nor a pipe, which would block its reader.
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(descriptor, "rb") as file:
        return file.read(_LARGEST)
