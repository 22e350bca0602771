"""What the pod is like: the report that the kubelet gets whole on each change, and that lies beside the pod's logs.

The kubelet hears of a change at once; the file follows, for whoever comes after a death. It is written by the home's
thread, the newest content alone: a home that is slow or takes nothing holds up neither pod nor kubelet.
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
# How often the same probe of a container may have the report written, for failures that change nothing.
_AGAIN_S = 10.0
# Until a file that could not be written is tried again.
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
    def told_reason(self) -> str:
        """The reason that a status shows."""
        return self.reason or Reason.of_exit(self.code)

    @classmethod
    def of_status(cls, status: int) -> Exit:
        """Read a status of wait(2)."""
        if os.WIFSIGNALED(status):
            return cls(128 + os.WTERMSIG(status), os.WTERMSIG(status))
        return cls(os.WEXITSTATUS(status))


class Report:
    """The one report of a pod; each of its verbs writes it and tells `changed`."""

    def __init__(self, path: Path, facts: dict[str, Any], run: home.Run) -> None:
        """Keep a report that says nothing yet.

        Args:
            path: report.json.
            facts: uid, job, node, addresses, host_address.
            run: runs what touches the home.
        """
        self._path = path
        self._run = run
        self._busy = self._behind = False
        # Why the file could not be written the last time; empty when it could.
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
            "containers": {},
        }

    @property
    def content(self) -> dict[str, Any]:
        """A copy."""
        return copy.deepcopy(self._document)

    def expect(self, name: str, image_id: str, reason: str, image_name: str | None = None) -> None:
        """Name a container that has yet to start."""
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
        }

    def pod(self, phase: str) -> None:
        """Set the pod's phase: starting, running, stopping or ended."""
        self._document["phase"] = phase
        self.write()

    def refuse(self, reason: str, message: str) -> None:
        """Say why the pod cannot run."""
        self._document["error"] = {"reason": reason, "message": message}
        self.pod("ended")

    def services_error(self, why: str) -> None:
        """Say why the pod's Services are not as they should be; nothing when they are. The pod goes on."""
        if self._document["services_error"] != why:
            self._document["services_error"] = why
            self.write()

    def waiting(self, name: str, reason: str, message: str = "") -> None:
        """A container is about to start, or waits to start again; how it ended before becomes its past."""
        row = self._document["containers"][name]
        past = {key: row[key] for key in _KEPT} if row["state"] == "terminated" else row["last"]
        row.update(_NO_EXIT, state="waiting", reason=reason, message=message, last=past, is_started=False, ready=False)
        row["killing"] = ""
        self.write()

    def running(self, name: str, *, is_started: bool = False, ready: bool = False) -> None:
        """A container's program has started; who has no probes is ready with it, and is never seen otherwise."""
        row = self._document["containers"][name]
        row.update(_NO_EXIT, state="running", started=clock.now(), is_started=is_started, ready=ready)
        self.write()

    def terminated(self, name: str, ended: Exit) -> None:
        """A container has ended."""
        self._end(name, ended)
        self.write()

    def replaced(self, name: str, ended: Exit, reason: str) -> None:
        """A container has ended to be another: it waits, and is never seen as one that has ended."""
        self._end(name, ended)
        self.waiting(name, reason)

    def stays(self, name: str) -> None:
        """A container that was to start again does not: it is as it has ended."""
        row = self._document["containers"][name]
        if row["state"] == "waiting" and row["last"]:
            row.update(row["last"], state="terminated")
            self.write()

    def image(self, name: str, image_id: str, image_name: str | None) -> None:
        """Say what image a container has from now on; empty texts: none, it waits for one."""
        row = self._document["containers"][name]
        if (row["image_id"], row["image_name"]) != (image_id, image_name):
            row.update(image_id=image_id, image_name=image_name)
            self.write()

    def killing(self, name: str, why: str) -> None:
        """Say why a container is ended, for an event."""
        self._document["containers"][name]["killing"] = why
        self.write()

    def _end(self, name: str, ended: Exit) -> None:
        row = self._document["containers"][name]
        row.update(
            state="terminated",
            reason=ended.told_reason,
            message=ended.message,
            exit_code=ended.code,
            signal=ended.signal,
            started=row["started"] or clock.now(),
            finished=clock.now(),
            is_started=False,
            ready=False,
        )

    def restarted(self, name: str) -> None:
        """Count a restart; it is written with what follows."""
        self._document["containers"][name]["restarts"] += 1

    def health(self, name: str, *, is_started: bool | None = None, ready: bool | None = None) -> None:
        """Set what probes have found; None leaves it."""
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
            why: how it failed.
            killing: what is done about it, for an event; empty while nothing is.
        """
        row = self._document["containers"][name]
        times = row["failures"].get(kind, {}).get("times", 0) + 1
        row["failures"][kind] = {"times": times, "message": why}
        row["killing"] = killing or row["killing"]
        now = time.monotonic()
        if killing or now - self._failures_written.get((name, kind), -_AGAIN_S) >= _AGAIN_S:
            self._failures_written[name, kind] = now
            self.write()

    def write(self) -> None:
        """Tell of a change, and have the file written: once, however much changes meanwhile."""
        self._document["sequence"] += 1
        self._behind = True
        if not self._error:
            self._save()
        self.changed()

    def last(self) -> None:
        """Write what is not written yet, however short a time ago the home took nothing: it may take this."""
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
            say(f"{self._path} cannot be written: {home.why(error)}; the pod goes on, look at the home")
        self._error, self._behind = home.why(error), True
        asyncio.get_running_loop().call_later(RETRY_S, self._save)


def write_whole(path: Path, text: str) -> None:
    """Write a file of mode 0600 that is there whole or not at all."""
    temporary = path.with_name(f".{path.name}.new")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
