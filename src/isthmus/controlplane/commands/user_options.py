"""What a user asks `isthmus up` for; kept, so that a later job without words, or a successor, is the same."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from isthmus.controlplane.errors import ControlPlaneError
from isthmus.controlplane.layout import Layout
from isthmus.support import durable


@dataclass(frozen=True, slots=True)
class UserOptions:
    """Options of the job; empty and 0 leave it to the site's settings and to Slurm.

    Attributes:
        partition: as sbatch has it.
        account: as sbatch has it.
        qos: as sbatch has it.
        time: limit, as sbatch has it.
        memory_mib: of the job.
        audit: whether requests to the API server are logged.
        data: where etcd keeps its data, a DataLocation.
        figures: whether the kubelet reports counts to a site that asks for them.
        kubernetes: version or its beginning; empty for the newest.
        kubernetes_again: the time of a failed start of another version, after which it is to be tried once more.
    """

    partition: str = ""
    account: str = ""
    qos: str = ""
    time: str = ""
    memory_mib: int = 0
    audit: bool = False
    data: str = ""
    figures: bool = True
    kubernetes: str = ""
    kubernetes_again: str = ""


def read(layout: Layout) -> UserOptions:
    """Return what was asked for last.

    Raises:
        ControlPlaneError: the file is no such thing.
    """
    try:
        document = json.loads(layout.user_options.read_text(encoding="utf-8"))
        return UserOptions(**{each.name: document[each.name] for each in fields(UserOptions) if each.name in document})
    except FileNotFoundError:
        return UserOptions()
    except (OSError, ValueError, TypeError) as error:
        raise ControlPlaneError(f"{layout.user_options} cannot be read ({error}); remove it") from error


def changed(before: UserOptions, changes: Mapping[str, Any]) -> UserOptions:
    """Return options with some changed."""
    return replace(before, **changes)


def keep(layout: Layout, changes: Mapping[str, Any]) -> UserOptions:
    """Change what is kept by what was given now; return the whole."""
    kept = changed(read(layout), changes)
    layout.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    durable.write(layout.user_options, json.dumps({"schema": 1, **asdict(kept)}, indent=1) + "\n", 0o600)
    return kept
