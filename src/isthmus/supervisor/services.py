"""The cluster's Services: from the kubelet to the node's network daemon, which alone may write rules for the pod.

The kubelet sends all of them when it has connected, and then what changed; the daemon always gets all of them, so
the next request repairs whatever was lost. It may be away for a while: it is asked until it has
them, and the pod never ends for that. The first containers wait for the first answer, but not for long.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from isthmus.podproto.frames import Message
from isthmus.supervisor.runtime.processes import say
from isthmus.support.backoff import Backoff

# Where isthmus-networkd listens, and what it speaks.
SOCKET = Path("/run/isthmus/networkd.sock")
VERSION = 1
# For one answer; before what failed is tried again; before what was refused is: an admin must act first.
ANSWER_S = 30.0
FIRST_S, LONGEST_S = 0.2, 10.0
REFUSED_S = 60.0
# Failed attempts before the error is reported: a restarting daemon is soon back.
PATIENCE = 5
# Codes of the daemon that another try may heal soon.
_PASSING = ("unavailable", "not_found", "failed", "internal")
Row = list[Any]


class _RefusedError(Exception):
    """The daemon said no, and its code."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code


class Services:
    """Applies the Services that the kubelet sends.

    Args:
        job: Slurm's number.
        on_outcome: is called with why the daemon has not taken them, and with nothing when it has.
        path: the daemon's socket for everybody.
        pauses_s: the first and the longest pause before a failed request is repeated.
    """

    def __init__(
        self,
        job: str,
        on_outcome: Callable[[str], None],
        path: Path = SOCKET,
        pauses_s: tuple[float, float] = (FIRST_S, LONGEST_S),
    ) -> None:
        self._job, self._pauses_s = job, pauses_s
        self._on_outcome = on_outcome
        self._path = path
        self._rows: dict[str, Row] = {}
        self._taken: dict[str, Row] | None = None
        self._changed = asyncio.Event()
        self._applied = asyncio.Event()
        self._over = False
        self._task: asyncio.Future[None] | None = None

    def take(self, message: Message) -> None:
        """Take what the kubelet says.

        Raises:
            ValueError: it is none of what was agreed (KeyError where something is missing).
        """
        if not isinstance(message["set"], list) or not isinstance(message["drop"], list):
            raise ValueError("Services come as lists")
        new = {_key(row): row for row in message["set"]}
        dropped = {str(key) for key in message["drop"]}
        kept = {} if message["whole"] else self._rows
        self._rows = {**{key: row for key, row in kept.items() if key not in dropped}, **new}
        self._changed.set()
        if self._task is None:
            self._task = asyncio.ensure_future(self._run())

    async def applied(self, timeout_s: float) -> None:
        """Wait for the daemon's first answer, where it was asked at all, or until the time is over."""
        if self._task is not None:
            with suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._applied.wait(), timeout_s)

    async def end(self) -> None:
        """Ask no more; the rules go with the job."""
        # wait_for of Python before 3.12 may lose a cancellation.
        self._over = True
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        while not self._over:
            await self._changed.wait()
            self._changed.clear()
            if self._rows != self._taken:
                await self._bring()
            self._applied.set()

    async def _bring(self) -> None:
        """Ask until the daemon has what is known by then."""
        backoff, failures = Backoff(*self._pauses_s), 0
        while not self._over:
            rows = self._rows
            self._changed.clear()
            try:
                await asyncio.wait_for(self._ask(list(rows.values())), ANSWER_S)
                self._taken = rows
                self._on_outcome("")
                return
            except _RefusedError as error:
                why, refused = str(error), error.code not in _PASSING
            except (TimeoutError, OSError, ValueError, LookupError, TypeError, EOFError) as error:
                why, refused = f"{self._path}: {error or type(error).__name__}", False
            failures += 1
            if refused or failures == PATIENCE:
                say(f"the node's network daemon has not taken the cluster's Services: {why}")
                self._on_outcome(why)
            if refused:
                # The pod must not wait for an admin.
                self._applied.set()
            await self._pause(REFUSED_S if refused else backoff.next_s())

    async def _pause(self, pause_s: float) -> None:
        """Wait; not on when there is something new."""
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._changed.wait(), pause_s)

    async def _ask(self, rows: list[Row]) -> None:
        reader, writer = await asyncio.open_unix_connection(str(own_socket(self._path)))
        try:
            request = {"version": VERSION, "op": "job_services", "job": int(self._job), "services": rows}
            writer.write(json.dumps(request, separators=(",", ":")).encode() + b"\n")
            await writer.drain()
            reply = json.loads(await reader.readuntil(b"\n"))
        finally:
            writer.close()
        if not reply["ok"]:
            raise _RefusedError(str(reply["error"]["code"]), str(reply["error"]["message"]))


def own_socket(common: Path) -> Path:
    """Return the socket that the daemon has for this account alone, if there is one: others cannot fill its queue."""
    own = common.with_name("accounts") / str(os.geteuid())
    return own if os.access(own, os.W_OK) else common


def _key(row: Any) -> str:
    if not isinstance(row, list) or len(row) < 3:
        raise ValueError(f"{row!r:.60} is no Service")
    return " ".join(map(str, row[:3]))
