"""The pod's report: sent whole to the kubelet on each change, and written beside the pod's logs.

The message is sent immediately; the file, which survives a crash, is written later by the home's
thread, the newest content only: a slow or unwritable home delays neither pod nor kubelet.
"""

from __future__ import annotations

import asyncio
import copy
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from isthmus.podproto.reasons import Reason
from isthmus.supervisor import clock, home
from isthmus.supervisor.runtime.processes import say

SCHEMA = 1
_NO_EXIT = {"reason": "", "message": "", "exit_code": None, "signal": None, "started": None, "finished": None}
# The shortest interval between reports of repeated failures of the same probe.
_AGAIN_S = 10.0
# Until a failed write is retried.
RETRY_S = 2.0
_KEPT = ("exit_code", "signal", "reason", "message", "started", "finished")


class Exit(NamedTuple):
    """How a container ended.

    Attributes:
        code: exit status; 128 + signal when a signal ended it.
        signal: its number, or None.
        reason: in Kubernetes' words; empty: by the code.
        message: its termination message, or why it could not start.
    """

    code: int
    signal: int | None = None
    reason: str = ""
    message: str = ""

    @property
    def shown_reason(self) -> str:
        """The reason in the container's status."""
        return self.reason or Reason.of_exit(self.code)

    @classmethod
    def of_status(cls, status: int) -> Exit:
        """Convert a status of wait(2)."""
        if os.WIFSIGNALED(status):
            return cls(128 + os.WTERMSIG(status), os.WTERMSIG(status))
        return cls(os.WEXITSTATUS(status))


class Report:
    """The pod's report; each method changes it and notifies `changed`."""

    def __init__(self, path: Path, facts: dict[str, Any], run: home.Run) -> None:
        """Create an empty report.

        Args:
            path: report.json.
            facts: uid, job, node, addresses, host_address.
            run: runs accesses to the home in a thread.
        """
        self._path = path
        self._run = run
        self._busy = self._behind = False
        # The last write error; empty after a success.
        self._error = ""
        self._failures_written: dict[tuple[str, str], float] = {}
        self.changed: Callable[[], None] = lambda: None
        self._document: dict[str, Any] = {
            "schema": SCHEMA,
            **facts,
            "sequence": 0,
            "phase": "starting",
            "started": clock.now(),
            "error": None,
            "services_error": "",
            "sigterm": False,
            "containers": {},
        }

    @property
    def content(self) -> dict[str, Any]:
        """A copy."""
        return copy.deepcopy(self._document)

    def expect(self, name: str, image_id: str, reason: str, image_name: str | None = None) -> None:
        """Add a container that has not started."""
        self._document["containers"][name] = {
            "state": "waiting",
            **_NO_EXIT,
            "reason": reason,
            "restarts": 0,
            "is_started": False,
            "ready": False,
            "image_id": image_id,
            "image_name": image_name,
            "last": None,
            "failures": {},
            "killing": "",
            "oom_kills": 0,
        }

    def pod(self, phase: str) -> None:
        """Set the pod's phase: starting, running, stopping or ended."""
        self._document["phase"] = phase
        self.write()

    def refuse(self, reason: str, message: str) -> None:
        """Set why the pod cannot run."""
        self._document["error"] = {"reason": reason, "message": message}
        self.pod("ended")

    def sigterm(self) -> None:
        """Set that Slurm asked the pod to end; what its job was ended for, only Slurm knows."""
        self._document["sigterm"] = True

    def services_error(self, why: str) -> None:
        """Set the error of applying Services, or clear it. The pod continues."""
        if self._document["services_error"] != why:
            self._document["services_error"] = why
            self.write()

    def waiting(self, name: str, reason: str, message: str = "") -> None:
        """Set a container waiting for its start or restart; its present end becomes its last state."""
        row = self._document["containers"][name]
        past = {key: row[key] for key in _KEPT} if row["state"] == "terminated" else row["last"]
        row.update(_NO_EXIT, state="waiting", reason=reason, message=message, last=past, is_started=False, ready=False)
        row["killing"] = ""
        self.write()

    def running(self, name: str, *, is_started: bool = False, ready: bool = False) -> None:
        """Set a container running; without probes it is ready in the same report."""
        row = self._document["containers"][name]
        row.update(_NO_EXIT, state="running", started=clock.now(), is_started=is_started, ready=ready)
        self.write()

    def terminated(self, name: str, ended: Exit) -> None:
        """Set a container terminated."""
        self._end(name, ended)
        self.write()

    def replaced(self, name: str, ended: Exit, reason: str) -> None:
        """Set a container waiting for its new image, without reporting its end."""
        self._end(name, ended)
        self.waiting(name, reason)

    def stays(self, name: str) -> None:
        """Set a waiting container back to terminated: it is not restarted."""
        row = self._document["containers"][name]
        if row["state"] == "waiting" and row["last"]:
            row.update(row["last"], state="terminated")
            self.write()

    def image(self, name: str, image_id: str, image_name: str | None) -> None:
        """Set a container's image; empty while it waits for one."""
        row = self._document["containers"][name]
        if (row["image_id"], row["image_name"]) != (image_id, image_name):
            row.update(image_id=image_id, image_name=image_name)
            self.write()

    def killing(self, name: str, why: str) -> None:
        """Set why a container is being killed, for an event."""
        self._document["containers"][name]["killing"] = why
        self.write()

    def _end(self, name: str, ended: Exit) -> None:
        row = self._document["containers"][name]
        row.update(
            state="terminated",
            reason=ended.shown_reason,
            message=ended.message,
            exit_code=ended.code,
            signal=ended.signal,
            started=row["started"] or clock.now(),
            finished=clock.now(),
            is_started=False,
            ready=False,
        )

    def restarted(self, name: str) -> None:
        """Count a restart; reported with the next change."""
        self._document["containers"][name]["restarts"] += 1

    def health(self, name: str, *, is_started: bool | None = None, ready: bool | None = None) -> None:
        """Set results of probes; None leaves them."""
        row = self._document["containers"][name]
        new = {"is_started": is_started, "ready": ready}
        new = {key: value for key, value in new.items() if value is not None and row[key] != value}
        if new:
            row.update(new)
            self.write()

    def unhealthy(self, name: str, kind: str, why: str, killing: str = "") -> None:
        """Count a failed probe.

        Args:
            name: the container's.
            kind: startup, liveness or readiness.
            why: the failure.
            killing: the consequence, for an event; empty below the threshold.
        """
        row = self._document["containers"][name]
        times = row["failures"].get(kind, {}).get("times", 0) + 1
        row["failures"][kind] = {"times": times, "message": why}
        row["killing"] = killing or row["killing"]
        now = time.monotonic()
        if killing or now - self._failures_written.get((name, kind), -_AGAIN_S) >= _AGAIN_S:
            self._failures_written[name, kind] = now
            self.write()

    def oom_kills(self, name: str, more: int) -> None:
        """Count processes of a container, or of its pod, that the kernel ended for want of memory while it ran."""
        self._document["containers"][name]["oom_kills"] += more
        self.write()

    def write(self) -> None:
        """Notify of a change and schedule the write; changes until then are merged."""
        self._document["sequence"] += 1
        self._behind = True
        if not self._error:
            self._save()
        self.changed()

    def last(self) -> None:
        """Write pending content now, even if the last write has just failed."""
        self._save()

    def _save(self) -> None:
        if self._busy or not self._behind:
            return
        self._busy, self._behind = True, False
        text = json.dumps(self._document)
        self._run(lambda: write_whole(self._path, text), self._saved)

    def _saved(self, error: OSError | None) -> None:
        self._busy = False
        if error is None:
            self._error = ""
            self._save()
            return
        if not self._error:
            say(f"{self._path} cannot be written: {home.why(error)}; the pod continues, check the home")
        self._error, self._behind = home.why(error), True
        asyncio.get_running_loop().call_later(RETRY_S, self._save)


def write_whole(path: Path, text: str) -> None:
    """Write a file atomically, with mode 0600."""
    temporary = path.with_name(f".{path.name}.new")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
