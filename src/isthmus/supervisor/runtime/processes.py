"""Starts processes in other namespaces and waits for them.

A process starts as a fork of this one that joins the namespaces and forks again, since a PID namespace applies only to
children; the intermediate process ends at once, and this program, as subreaper, becomes the parent. So exit
statuses are the kernel's own, a program that cannot start is distinguished from one that fails, and a variable of any
name reaches it without appearing on a command line.

Until it executes its program such a process is a copy of this one, with the plan and all Secrets in its memory, among
processes that may be hostile. So before it joins anything it hides (`linux.hide`) and closes every descriptor but its
streams; the namespaces' it closes when it has joined them. Its folder and its program it looks for with nothing open,
and with few tries.

What waits for the home runs in threads (`home`). A fork has the one that forked alone, so it may join a user namespace;
nothing here takes a lock that those threads could hold.
"""

from __future__ import annotations

import asyncio
import errno
import fcntl
import gc
import json
import os
import signal
import termios
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NoReturn

from isthmus.supervisor.runtime import linux
from isthmus.supervisor.volumes import paths

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
# An image may set any PATH; during each lookup a copy of this process is in the container.
_PATH_FOLDERS = 64


class StartError(Exception):
    """A program could not be started; the message says why."""


@dataclass(frozen=True)
class Identity:
    """User, groups and capabilities (names without CAP_) of a process, and whether execve(2) may add privileges.

    `calls` is the filter of its system calls, from `seccomp`; empty for none.
    """

    uid: int = 0
    gid: int = 0
    groups: tuple[int, ...] = ()
    capabilities: frozenset[str] = frozenset()
    escalates: bool = True
    calls: bytes = b""


@dataclass(frozen=True)
class Place:
    """Namespaces to join, in this order, as (descriptor, kind); root: a descriptor of the root folder, or None."""

    namespaces: tuple[tuple[int, int], ...] = ()
    root: int | None = None

    @property
    def processes(self) -> int:
        """The descriptor of the process namespace."""
        return next(descriptor for descriptor, kind in self.namespaces if kind == linux.NEWPID)

    def among(self, processes: int) -> Place:
        """Return this place with another process namespace; the descriptor that is not needed is closed."""
        found = []
        for descriptor, kind in self.namespaces:
            if kind == linux.NEWPID:
                os.close(descriptor)
                descriptor = os.dup(processes)
            found.append((descriptor, kind))
        return Place(tuple(found), self.root)

    @property
    def descriptors(self) -> list[int]:
        """All of them."""
        return [*(descriptor for descriptor, _ in self.namespaces), *([] if self.root is None else [self.root])]

    def close(self) -> None:
        """Close the descriptors."""
        for descriptor in self.descriptors:
            os.close(descriptor)


@dataclass(frozen=True)
class Program:
    """What to execute.

    Attributes:
        argv: the first word is looked for in env's PATH.
        env: the whole environment.
        cwd: made if it is missing.
        identity: None stays who one is in the namespaces.
        terminal: descriptor 0 becomes the controlling terminal.
    """

    argv: Sequence[str]
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: str = "/"
    identity: Identity | None = None
    terminal: bool = False


def start(program: Program, place: Place, streams: tuple[int, int, int]) -> tuple[int, int]:
    """Start a program.

    Args:
        program: what.
        place: where.
        streams: descriptors that become 0, 1 and 2; they stay open here.

    Returns:
        Its pid, and a descriptor that gives the reason and then its end if it cannot be executed (see `reason`),
        only its end otherwise.

    Raises:
        StartError: the namespaces cannot be joined.
    """
    pids, pid_writer = os.pipe()
    reasons, reason_writer = os.pipe()
    between = os.fork()
    if not between:
        _guarded(reason_writer, lambda: _fork_inside(program, place, streams, pid_writer, reason_writer))
    os.close(pid_writer)
    os.close(reason_writer)
    text = os.read(pids, 32)
    os.close(pids)
    os.waitpid(between, 0)
    if not text:
        raise StartError(reason(reasons) or "the process between was killed")
    return int(text), reasons


def reason(descriptor: int) -> str:
    """Read why a program was not executed, empty if it was, and close the descriptor."""
    with os.fdopen(descriptor, "rb") as file:
        return file.read().decode(errors="replace")


def call(action: Callable[[], Any], place: Place, kept: tuple[int, ...] = ()) -> tuple[int, int]:
    """Run a function of this program in other namespaces.

    Args:
        action: what.
        place: where.
        kept: descriptors that it needs.

    Returns:
        Its pid, and a descriptor that gives a JSON object with `result` or `error`.
    """
    results, writer = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
            join(place, (null, null, null), (writer, *kept))
            answer = {"result": action()}
        except Exception as error:
            answer = {"error": str(error) or type(error).__name__}
        with os.fdopen(writer, "w") as file:
            file.write(json.dumps(answer))
        os._exit(0)
    os.close(writer)
    return pid, results


def _guarded(writer: int, action: Callable[[], None]) -> NoReturn:
    try:
        action()
    except Exception as error:
        os.write(writer, str(error).encode()[:4000])
    os._exit(127)


def join(place: Place, streams: tuple[int, int, int], kept: tuple[int, ...]) -> None:
    """Let a fork become one of a place; of this program it has only its memory, which is hidden, and what is `kept`.

    Pipes that are kept are closed by execve(2), as all that Python opens.
    """
    signal.set_wakeup_fd(-1)
    # An object that is collected later would close a number that is somebody else's by then.
    gc.disable()
    linux.hide()
    # High first: one of them may be 0, 1 or 2 itself.
    high = [fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 3) for descriptor in streams]
    linux.close_all([*high, *place.descriptors, *kept])
    for target, descriptor in enumerate(high):
        os.dup2(descriptor, target)
    for descriptor, kind in place.namespaces:
        linux.setns(descriptor, kind)
    if place.root is not None:
        os.fchdir(place.root)
        os.chroot(".")
    linux.close_all([0, 1, 2, *kept])


def _fork_inside(program: Program, place: Place, streams: tuple[int, int, int], pid_writer: int, writer: int) -> None:
    join(place, streams, (pid_writer, writer))
    pid = os.fork()
    if pid:
        os.write(pid_writer, str(pid).encode())
        os._exit(0)
    os.close(pid_writer)
    _guarded(writer, lambda: _execute(program))


def _execute(program: Program) -> None:
    os.setsid()
    if program.terminal:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    for number in (signal.SIGPIPE, signal.SIGXFSZ, *_ENDING):
        signal.signal(number, signal.SIG_DFL)
    os.umask(0o022)
    if program.cwd == "/":
        os.chdir("/")
    else:
        paths.enter(program.cwd)
    if program.identity is not None:
        _become(program.identity)
    env = {"PATH": PATH, **program.env}
    name, why = program.argv[0], os.strerror(errno.ENOENT)
    for file in candidates(name, env["PATH"]):
        with suppress(FileNotFoundError, NotADirectoryError):
            why = _replaced(file, program.argv, env)
    raise OSError(f'exec: "{name}": {why}')


def _replaced(file: str, argv: Sequence[str], env: Mapping[str, str]) -> str:
    """Become a program; return why this may not be."""
    try:
        os.execve(file, list(argv), env)  # noqa: S606
    except PermissionError as error:
        return os.strerror(error.errno or errno.EACCES)


def candidates(name: str, search: str) -> list[str]:
    """Return where a program is looked for, in this order (execvp(3)).

    Raises:
        OSError: PATH has more folders than are tried.
    """
    if "/" in name:
        return [name]
    folders = search.split(":")
    if len(folders) > _PATH_FOLDERS:
        raise OSError(f"PATH has {len(folders)} folders, {_PATH_FOLDERS} at most; shorten it, or name {name} in full")
    return [f"{folder or '.'}/{name}" for folder in folders]


def _become(identity: Identity) -> None:
    kept = set(identity.capabilities)
    linux.bound_capabilities(kept)
    # Without no_new_privileges only CAP_SYS_ADMIN may load a filter, which goes with the change of user.
    if identity.calls and identity.escalates:
        linux.filter_calls(identity.calls)
    if identity.groups or identity.gid or identity.uid:
        os.setgroups(list(identity.groups))
    os.setgid(identity.gid)
    os.setuid(identity.uid)
    # A change of ids has undone it where fs.suid_dumpable is 1; the filter may not let prctl(2) pass.
    if not (identity.calls and identity.escalates):
        linux.hide()
    if identity.uid == 0:
        linux.limit_capabilities(kept)
    if not identity.escalates:
        linux.no_new_privileges()
        if identity.calls:
            linux.filter_calls(identity.calls)


class Processes:
    """The children of this program; those nobody knows are reaped too."""

    def __init__(self) -> None:
        self._waited: dict[int, asyncio.Future[int]] = {}
        linux.become_subreaper()
        asyncio.get_running_loop().add_signal_handler(signal.SIGCHLD, self.reap)

    async def start(self, program: Program, place: Place, streams: tuple[int, int, int]) -> Process:
        """Start a program.

        Raises:
            StartError: it cannot be.
        """
        pid, reasons = start(program, place, streams)
        process = Process(pid, self._expect(pid))
        why = await read_all(reasons)
        if why:
            await process.status
            raise StartError(why.decode(errors="replace"))
        return process

    async def call(self, action: Callable[[], Any], place: Place, kept: tuple[int, ...] = ()) -> Any:
        """Run a function of this program in other namespaces, with the descriptors it needs; it returns JSON.

        Raises:
            StartError: what the function raised.
        """
        pid, results = call(action, place, kept)
        ended = self._expect(pid)
        text = await read_all(results)
        await ended
        answer = json.loads(text) if text else {"error": "the process that should do it was killed"}
        if "error" in answer:
            raise StartError(answer["error"])
        return answer["result"]

    def _expect(self, pid: int) -> asyncio.Future[int]:
        self._waited[pid] = asyncio.get_running_loop().create_future()
        return self._waited[pid]

    def reap(self) -> None:
        """Take the statuses of all children that have ended."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if not pid:
                return
            future = self._waited.pop(pid, None)
            if future and not future.done():
                future.set_result(status)


@dataclass
class Process:
    """A running child; `status` comes as wait(2) gives it."""

    pid: int
    status: asyncio.Future[int]

    def kill(self, number: int) -> None:
        """Send a signal, if it still runs."""
        if not self.status.done():
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    async def ended(self, timeout_s: float | None = None) -> bool:
        """Wait; return whether it has ended."""
        await asyncio.wait([self.status], timeout=timeout_s)
        return self.status.done()


async def read_all(descriptor: int, limit: int = 1 << 20) -> bytes:
    """Read a pipe to its end, and close it."""
    loop = asyncio.get_running_loop()
    parts: list[bytes] = []
    os.set_blocking(descriptor, False)
    try:
        while True:
            ready = loop.create_future()
            loop.add_reader(descriptor, _resolve, ready)
            try:
                await ready
            finally:
                loop.remove_reader(descriptor)
            part = os.read(descriptor, 65536)
            if not part or sum(map(len, parts)) > limit:
                return b"".join(parts)
            parts.append(part)
    finally:
        os.close(descriptor)


def _resolve(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def say(text: str) -> None:
    """Write a line to the job's log, ignoring errors: the home may be full or unreachable."""
    with suppress(OSError):
        os.write(2, f"{text}\n".encode(errors="replace"))
