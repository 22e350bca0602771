"""The pods' folders, ~/.isthmus/pods/<uid>: the durable record, of which memory is a cache.

pod.json     the pod as it was accepted; from then on a job may exist
job.json     the pod's Slurm job; written after sbatch, so a crash between both is found by the job's comment
kubelet.json address of the kubelet, for the supervisor
credential/  the supervisor's certificate and key for the channel
report.json, logs/   the supervisor's
slurm.log            output of the job: Slurm's messages and the supervisor's log
"""

from __future__ import annotations

import json
import os
import re
import stat
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from shutil import rmtree
from typing import Any

from isthmus.kubelet.credentials import Authority
from isthmus.podproto import folder as names
from isthmus.podproto import reports
from isthmus.podproto.reports import ReportError
from isthmus.support import durable

SCHEMA = 1
# The end of slurm.log that a pod's message may quote.
_WORDS_BYTES, _WORDS_LINES = 1000, 3
# A file server may still list removed files.
_REMOVALS = 5
_UID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@dataclass(frozen=True, slots=True)
class PodFolder:
    """The folder of one pod."""

    path: Path

    @property
    def uid(self) -> str:
        """The pod's."""
        return self.path.name

    def accept(self, pod: dict[str, Any]) -> None:
        """Write the pod; only its owner may read the folder."""
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._write(names.POD, pod)

    def pod(self) -> dict[str, Any] | None:
        """Return the pod as it was accepted; None when it was not."""
        return self._read(names.POD)

    def set_job(self, job: str) -> None:
        """Write the pod's job."""
        self._write(names.JOB, {"schema": SCHEMA, "job": job, "submitted": datetime.now(UTC).isoformat()})

    def job(self) -> str | None:
        """Return the pod's job; None when none is known."""
        kept = self._read(names.JOB)
        return str(kept["job"]) if kept else None

    def forget_job(self) -> None:
        """Remove the pod's job and its reports, before another is submitted."""
        for name in ("report.json", "job.json"):
            (self.path / name).unlink(missing_ok=True)

    def submitted(self) -> str | None:
        """Return when the job was submitted, RFC 3339."""
        kept = self._read(names.JOB)
        return str(kept["submitted"]) if kept else None

    def report(self) -> dict[str, Any] | None:
        """Return the supervisor's last report; None if it is missing or unreadable: the channel delivers it as well."""
        try:
            return reports.checked(self._read(names.REPORT) or {})
        except (ReportError, OSError):
            return None

    def last_words(self) -> str:
        """Return the last lines of the job's log, joined; empty for none."""
        with suppress(OSError), (self.path / names.JOB_LOG).open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _WORDS_BYTES))
            lines = file.read().decode(errors="replace").splitlines()
            return "; ".join([line.strip() for line in lines if line.strip()][-_WORDS_LINES:])
        return ""

    def set_address(self, address: str, port: int) -> None:
        """Write the kubelet's address unless it is current: each fsync loads the file server."""
        where = {"schema": SCHEMA, "address": address, "port": port}
        if self._read(names.ADDRESS) != where:
            self._write(names.ADDRESS, where)

    def renew_credential(self, authority: Authority) -> None:
        """Issue a credential if it is missing or due for renewal; always write the trusted certificates."""
        folder = self.path / names.CREDENTIAL
        folder.mkdir(mode=0o700, exist_ok=True)
        if _text(folder / names.AUTHORITY) != authority.certificate:
            durable.write(folder / names.AUTHORITY, authority.certificate, 0o600)
        present = _text(folder / names.CERTIFICATE)
        if present and not authority.is_due(present, datetime.now(UTC)):
            return
        made = authority.pod(self.uid)
        # The certificate is written last: its presence implies the key.
        durable.write(folder / names.KEY, made.key, 0o600)
        durable.write(folder / names.CERTIFICATE, made.certificate, 0o600)

    def drop_credential(self) -> None:
        """Remove the key of a pod whose job has ended."""
        rmtree(self.path / names.CREDENTIAL, ignore_errors=True)

    def logs(self, container: str) -> list[list[Path]]:
        """Return the files of a container's runs, oldest first: each its log, and before it the rotated part."""
        return names.runs(self.path / names.LOGS / container)

    def remove(self) -> None:
        """Remove everything, job.json and the folder last, so that a crash half-way leaves the job known."""
        for _ in range(_REMOVALS):
            if not self.path.exists():
                return
            # A file may vanish meanwhile, such as a temporary one; the others are still removed.
            with suppress(FileNotFoundError):
                for path in self.path.iterdir():
                    if path.name != names.JOB:
                        rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink(missing_ok=True)
                rmtree(self.path)

    def _read(self, name: str) -> dict[str, Any] | None:
        text = _text(self.path / name)
        try:
            known = json.loads(text) if text else None
        except (ValueError, RecursionError):
            return None
        return known if isinstance(known, dict) else None

    def _write(self, name: str, content: dict[str, Any]) -> None:
        durable.write(self.path / name, json.dumps(content), 0o600)


class Store:
    """All pods' folders.

    Args:
        path: ~/.isthmus/pods; made when missing.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        # A read-only home does not keep the kubelet from starting.
        if stat.S_IMODE(path.stat().st_mode) != 0o700:
            path.chmod(0o700)

    def folder(self, uid: str) -> PodFolder:
        """Return a pod's folder, which may not exist.

        Raises:
            ValueError: not a UID, and possibly a path elsewhere.
        """
        if not _UID.fullmatch(uid):
            raise ValueError(f"{uid!r} is no UID")
        return PodFolder(self.path / uid)

    def folders(self) -> list[PodFolder]:
        """Return the folders of all pods."""
        return [PodFolder(path) for path in self.path.iterdir() if _UID.fullmatch(path.name) and path.is_dir()]


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return ""
