"""The exporter's settings: /etc/isthmus/exporter.json, written by the role `monitoring`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SCHEMA = 1
FILE = Path("/etc/isthmus/exporter.json")
FOLDER = Path("/run/isthmus-exporter")
_REMEDY = "run playbooks/monitoring.yml"


class SettingsError(Exception):
    """The file cannot be used; the message names it, the field, and the remedy."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What this host's exporter asks.

    Attributes:
        interval_s: between two questions to one source.
        slurm_interval_s: the same for Slurm.
        slurm_prefix: where Slurm's commands are, on the host that asks for its figures; None on others.
        network: whether this host is in the pod networks.
        registry: where the cluster's registry answers on the controller; empty on other hosts.
        users: whether isthmus-jobsd on this host keeps figures that users' kubelets report.
        sources: part -> where a daemon of this host offers figures on the loopback.
        folder: where files go.
    """

    interval_s: float = 15.0
    slurm_interval_s: float = 15.0
    slurm_prefix: Path | None = None
    network: bool = False
    registry: str = ""
    users: bool = False
    sources: Mapping[str, str] = field(default_factory=dict)
    folder: Path = FOLDER


def read(path: Path = FILE) -> Settings:
    """Read the file.

    Raises:
        SettingsError: it is missing, or not as wanted.
    """
    try:
        return parse(json.loads(path.read_text()))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise SettingsError(f"{path}: {error!r}; {_REMEDY}") from error


def parse(given: Mapping[str, Any]) -> Settings:
    """Read what the file holds.

    Raises:
        KeyError: a field is missing.
        ValueError: one is not as wanted.
    """
    if given["schema"] != SCHEMA:
        raise ValueError(f"schema {given['schema']}, not {SCHEMA}")
    prefix = given["slurm_prefix"]
    return Settings(
        float(given["interval_s"]),
        float(given["slurm_interval_s"]),
        Path(prefix) if prefix else None,
        bool(given["network"]),
        str(given.get("registry", "")),
        bool(given.get("users", False)),
        {str(part): str(url) for part, url in given["sources"].items()},
    )
