"""Supervises programs: started in order of their dependencies, restarted with back-off, stopped in reverse order.

A program starts when its dependencies are ready, and is stopped when its dependents have ended, so the API server's
last writes reach etcd. One that crashes is restarted alone; its clients reconnect.
"""

from __future__ import annotations

import asyncio
import logging
import os
import queue
import threading
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from logging.handlers import RotatingFileHandler
from pathlib import Path

from isthmus.clients import children
from isthmus.support.backoff import Backoff

LOG_BYTES = 5 << 20
LOG_FILES = 2
BACKOFF_FIRST_S = 1.0
BACKOFF_MAX_S = 60.0
# A program that ran so long has not failed because of how it was started.
STABLE_S = 120.0
_PROBE_S = 0.2
# Of a log, that wait for the home; and how long the last of them do.
_LINES = 10_000
_LAST_LINES_S = 2.0

_log = logging.getLogger(__name__)


class ProgramState(StrEnum):
    """How a program is."""

    WAITING = "waiting"
    STARTING = "starting"
    READY = "ready"
    BACKOFF = "backoff"
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class Program:
    """One program to keep.

    Attributes:
        name: of the program, and of its log.
        argv: how it is started.
        is_ready: asks it; may take a moment, and is called in a thread.
        needs: the programs that must be ready first, and steps that must be `done`.
        environment: variables set besides the inherited ones.
        grace_s: how long it may take to end.
        keep: descriptors that it gets.
        farewell: what is done with it before it is ended in order, when those that need it have ended.
        is_alive: asks whether it still answers, whatever; None: nobody asks.
        check_s: seconds between two of these questions.
        hung_after: so many without an answer end it, and it is started again.
    """

    name: str
    argv: tuple[str, ...]
    is_ready: Callable[[], bool]
    needs: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    grace_s: float = 10.0
    keep: tuple[int, ...] = ()
    farewell: Callable[[], Awaitable[None]] | None = None
    is_alive: Callable[[], bool] | None = None
    check_s: float = 10.0
    hung_after: int = 6


@dataclass(slots=True)
class Condition:
    """The state of a program; `said` is its last line, where it failed."""

    state: ProgramState = ProgramState.WAITING
    pid: int = 0
    restarts: int = 0
    ended: str = ""
    said: str = ""


class Keeper:
    """Runs programs until it is stopped.

    Args:
        programs: in any order.
        logs: the folder of their logs.
        on_change: called after each change of a condition.
    """

    def __init__(self, programs: Sequence[Program], logs: Path, on_change: Callable[[], None] = lambda: None) -> None:
        self._programs = programs
        self._logs = logs
        self._on_change = on_change
        self._stopping = asyncio.Event()
        known = [name for program in programs for name in (program.name, *program.needs)]
        self._ready = {name: asyncio.Event() for name in known}
        self._over = {program.name: asyncio.Event() for program in programs}
        self.conditions = {program.name: Condition() for program in programs}

    def stop(self) -> None:
        """End all; `run` returns when they have."""
        self._stopping.set()

    def done(self, step: str) -> None:
        """Say that a step which is no program was done, for good."""
        self._ready[step].set()

    async def run(self) -> None:
        """Keep the programs."""
        async with asyncio.TaskGroup() as group:
            for program in self._programs:
                group.create_task(self._keep(program), name=program.name)

    async def ready(self, *names: str) -> bool:
        """Wait until these are ready; False if it is stopped first."""
        return await self._unless_stopped(_all(self._ready[name] for name in names))

    def states(self) -> dict[str, dict[str, object]]:
        """Return the conditions for a file."""
        return {name: asdict(condition) for name, condition in self.conditions.items()}

    async def _keep(self, program: Program) -> None:
        try:
            if await self.ready(*program.needs):
                with _log_file(self._logs / f"{program.name}.log") as hear:
                    await self._restart_for_ever(program, hear)
        finally:
            self._set(program, ProgramState.ENDED)
            self._over[program.name].set()

    async def _restart_for_ever(self, program: Program, hear: Callable[[str], None]) -> None:
        backoff = Backoff(BACKOFF_FIRST_S, BACKOFF_MAX_S)
        while not self._stopping.is_set():
            began_s = time.monotonic()
            await self._run_once(program, hear)
            if self._stopping.is_set():
                return
            if time.monotonic() - began_s > STABLE_S:
                backoff.reset()
            self._set(program, ProgramState.BACKOFF)
            await self._unless_stopped(asyncio.sleep(backoff.next_s()))
            self.conditions[program.name].restarts += 1

    async def _run_once(self, program: Program, hear: Callable[[str], None]) -> None:
        condition = self.conditions[program.name]

        def listen(line: str) -> None:
            condition.said = line[:500] or condition.said
            hear(line)

        self._set(program, ProgramState.STARTING)
        try:
            child = await children.start(program.argv, listen, environment=program.environment, keep=program.keep)
        except OSError as error:
            condition.ended = f"could not be started: {error}"
            return
        condition.pid = child.pid
        waiting = asyncio.create_task(child.wait())
        probing = asyncio.create_task(self._probe(program, child))
        try:
            await self._unless_stopped(asyncio.shield(waiting))
        finally:
            probing.cancel()
            self._ready[program.name].clear()
        if not waiting.done():
            await self._end(program, child)
        condition.ended = _words(await waiting)
        condition.pid = 0
        _log.info("%s %s", program.name, condition.ended)

    async def _probe(self, program: Program, child: children.Child) -> None:
        while not await asyncio.to_thread(program.is_ready):
            await asyncio.sleep(_PROBE_S)
        self._set(program, ProgramState.READY)
        self._ready[program.name].set()
        if program.is_alive is not None:
            await self._hung(program, program.is_alive)
            _log.error("%s does not answer; it is restarted", program.name)
            await child.stop(program.grace_s)

    async def _hung(self, program: Program, is_alive: Callable[[], bool]) -> None:
        """Return when a program has left so many questions unanswered, one after the other."""
        unanswered = 0
        while unanswered < program.hung_after:
            await asyncio.sleep(program.check_s)
            unanswered = 0 if await asyncio.to_thread(is_alive) else unanswered + 1

    async def _end(self, program: Program, child: children.Child) -> None:
        users = [each.name for each in self._programs if program.name in each.needs]
        await _all(self._over[name] for name in users)
        if program.farewell is not None:
            await program.farewell()
        await child.stop(program.grace_s)

    async def _unless_stopped(self, work: Awaitable[object]) -> bool:
        task = asyncio.ensure_future(work)
        stopping = asyncio.create_task(self._stopping.wait())
        try:
            await asyncio.wait({task, stopping}, return_when=asyncio.FIRST_COMPLETED)
            return task.done() and not self._stopping.is_set()
        finally:
            task.cancel()
            stopping.cancel()

    def _set(self, program: Program, state: ProgramState) -> None:
        self.conditions[program.name].state = state
        self._on_change()


async def _all(events: Iterable[asyncio.Event]) -> None:
    for event in events:
        await event.wait()


def _words(status: int) -> str:
    return f"ended by signal {-status}" if status < 0 else f"ended with status {status}"


def shorten(path: Path) -> None:
    """Keep the last part of a log that others write, beside it; what is written in this moment may be lost.

    Raises:
        OSError: the home does not take it.
    """
    if not path.exists() or path.stat().st_size <= LOG_BYTES:
        return
    with path.open("r+b") as file:
        file.seek(-LOG_BYTES, os.SEEK_END)
        path.with_name(f"{path.name}.1").write_bytes(file.read(LOG_BYTES))
        # Its writers only append.
        file.truncate(0)


@contextmanager
def _log_file(path: Path) -> Iterator[Callable[[str], None]]:
    """Give what takes lines; a home that does not take them holds up nothing, they are dropped and counted."""
    waiting: queue.Queue[str | None] = queue.Queue(_LINES)
    lost = 0

    def hear(line: str) -> None:
        nonlocal lost
        try:
            if lost:
                waiting.put_nowait(f"[isthmus] {lost} lines are missing: the home did not take them")
                lost = 0
            waiting.put_nowait(line)
        except queue.Full:
            lost += 1

    writing = threading.Thread(target=_write_lines, args=(path, waiting), name=path.name, daemon=True)
    writing.start()
    try:
        yield hear
    finally:
        with suppress(queue.Full):
            waiting.put_nowait(None)
        writing.join(_LAST_LINES_S)


def _write_lines(path: Path, waiting: queue.Queue[str | None]) -> None:
    """Write lines until there comes none; what a full home does not take is lost."""
    handler = RotatingFileHandler(path, maxBytes=LOG_BYTES, backupCount=LOG_FILES, delay=True)
    handler.handleError = lambda record: None  # type: ignore[method-assign]
    while (line := waiting.get()) is not None:
        handler.emit(logging.LogRecord("", logging.INFO, "", 0, line, None, None))
    with suppress(OSError):
        handler.close()
