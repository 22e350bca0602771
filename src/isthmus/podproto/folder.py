"""File names in a pod's folder on the shared home, ~/.isthmus/pods/<uid>, used by kubelet, supervisor and job."""

from __future__ import annotations

from pathlib import Path

# The kubelet's: the pod as it was accepted, its Slurm job, and where supervisors find the kubelet.
POD, JOB, ADDRESS = "pod.json", "job.json", "kubelet.json"
# What the supervisor opens the channel with.
CREDENTIAL, AUTHORITY, CERTIFICATE, KEY = "credential", "ca.crt", "tls.crt", "tls.key"
# The supervisor's: its last report, and the containers' logs.
REPORT, LOGS = "report.json", "logs"
# What Slurm and the supervisor had to say.
JOB_LOG = "slurm.log"


def log(folder: Path, restart: int) -> Path:
    """Return the log of one start of a container.

    Args:
        folder: of the container's logs.
        restart: the start's number.
    """
    return folder / f"{restart}.log"


def parts(log: Path) -> list[Path]:
    """Return the files of a log that are there, oldest first: what was rotated, and the file itself."""
    return [path for path in (rotated(log), log) if path.exists()]


def rotated(log: Path) -> Path:
    """Return where the older part of a log lies."""
    return log.with_name(f"{log.name}.1")


def runs(folder: Path) -> list[list[Path]]:
    """Return the files of all starts of a container, oldest first.

    Args:
        folder: of the container's logs.
    """
    found = [path for path in folder.glob("*.log") if path.stem.isdecimal()]
    return [parts(path) for path in sorted(found, key=lambda path: int(path.stem))]
