"""Context of the commands: the user's files, the site's settings, the host's network, and the observed jobs."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from isthmus.clients.kube.apiserver import Access, ApiServer
from isthmus.clients.slurm import own_jobs as slurm_jobs
from isthmus.clients.slurm.commands import SlurmError
from isthmus.clients.slurm.own_jobs import Job
from isthmus.controlplane.errors import UnansweredError
from isthmus.controlplane.layout import JOB_NAME, Home
from isthmus.controlplane.network import PodNetwork
from isthmus.controlplane.settings import Settings


@dataclass(frozen=True, slots=True)
class Timing:
    """How the commands wait, seconds.

    Attributes:
        up_s: between two looks at the files and the API server of a cluster that starts.
        reach_s: from a ready cluster to its first answer here: routes of a new lease, caches of a shared home.
        down_s: between two looks at jobs that end.
        orderly_s: the programs' grace periods together; then Slurm ends what is left.
    """

    up_s: float = 0.25
    reach_s: float = 30.0
    down_s: float = 0.5
    orderly_s: float = 30.0


@dataclass(frozen=True, slots=True)
class Context:
    """A user on a host.

    Attributes:
        home: the user's files.
        settings: the site's.
        network: None where the driver has no private networks.
        python: the nodes' interpreter that has Isthmus.
        timing: of the commands.
    """

    home: Home
    settings: Settings
    network: PodNetwork | None
    python: Path
    timing: Timing = Timing()


def jobs() -> list[Job]:
    """Return all the user's jobs that have not ended.

    Raises:
        UnansweredError: Slurm did not answer.
    """
    try:
        return slurm_jobs.own_jobs()
    except SlurmError as error:
        raise UnansweredError(f"{error}; try again when Slurm answers") from error


# Others, such as CONFIGURING, lie between.
_RANKS = {"RUNNING": 0, "PENDING": 2, "COMPLETING": 3}


def control_planes(known: list[Job]) -> list[Job]:
    """Return the control plane's jobs among them: the one that runs first, then a successor."""
    mine = [job for job in known if job.name == JOB_NAME]
    # Of two that run, the older one serves, and the other waits for its end.
    return sorted(mine, key=lambda job: (_RANKS.get(job.state, 1), len(job.id), job.id))


def pod_jobs(home: Home, known: list[Job]) -> list[Job]:
    """Return the jobs of pods among them: those whose comment is the UID of a pod with a folder."""
    pods = set(os.listdir(home.pods)) if home.pods.is_dir() else set()
    return [job for job in known if job.comment in pods]


def read_json(path: Path) -> Mapping[str, Any] | None:
    """Return what a file holds that another node may just have written; None where there is none.

    NFS remembers for half a minute that a file was missing, unless its folder is read.
    """
    try:
        if path.name not in os.listdir(path.parent):
            return None
        document = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, json.JSONDecodeError):
        return None
    return document if isinstance(document, dict) else None


def api(home: Home, server: str, timeout_s: float = 5) -> ApiServer:
    """Return the way to an API server, as the user."""
    files = home.cluster
    access = Access(server, files.certificate("ca"), files.certificate("admin"), files.key("admin"))
    return ApiServer(access, timeout_s)
