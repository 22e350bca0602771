"""The controller's settings, written by role provider_openstack: those of the cluster, and how nodes join."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from isthmus.filters.errors import InputError
from isthmus.filters.provider.openstack import Settings, read
from isthmus.filters.suggest import check_keys

FOLDER = Path("/etc/isthmus/cloud")
STATE = Path("/var/lib/isthmus-cloud")
SCHEMA = 1
_KEYS = ("schema", "cluster", "identity", "server", "resume_timeout_s")


@dataclass(frozen=True)
class PowerSettings:
    """The settings.

    Attributes:
        cluster: the deployer's settings.
        cloud: name of the cloud in clouds.yaml.
        region: "" for that of clouds.yaml.
        clouds: the file with the credentials.
        identity: of the cluster's marks.
        server: host and port of isthmus-joind.
        resume_timeout_s: Slurm's ResumeTimeout, within which a node must join.
    """

    cluster: Settings
    cloud: str
    region: str
    clouds: Path
    identity: str
    server: str
    resume_timeout_s: int


def load(folder: Path = FOLDER) -> PowerSettings:
    """Read them.

    Raises:
        InputError: they are missing, incomplete, or open to others.
    """
    clouds = folder / "clouds.yaml"
    for path in (folder / "settings.json", clouds):
        _refuse_open(path)
    try:
        return parse(json.loads((folder / "settings.json").read_text(encoding="utf-8")), clouds)
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{folder}/settings.json is damaged: {error!r}", "run playbooks/publish.yml") from error


def parse(text: Mapping[str, Any], clouds: Path) -> PowerSettings:
    """Parse the role's file.

    Raises:
        InputError: for the first thing that is wrong.
    """
    check_keys("settings.json", text, _KEYS, _KEYS)
    if text["schema"] != SCHEMA:
        raise InputError(f"settings.json has schema {text['schema']}", "run playbooks/publish.yml of this version")
    given = text["cluster"]
    return PowerSettings(
        read(given),
        str(given["cloud"]),
        str(given["region"]),
        clouds,
        str(text["identity"]),
        str(text["server"]),
        int(text["resume_timeout_s"]),
    )


def _refuse_open(path: Path) -> None:
    try:
        mode = path.stat().st_mode
    except OSError as error:
        raise InputError(
            f"{path} cannot be read: {error.strerror}", "set slurm_cloud_nodes and run playbooks/publish.yml"
        ) from error
    if mode & 0o027:
        raise InputError(f"{path} is open to others (mode {mode & 0o777:04o})", "run playbooks/publish.yml")
