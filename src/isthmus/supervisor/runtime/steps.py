"""A container with a memory limit of its own is a Slurm step.

A container with a limit below the job's is a step of its own (`srun --overlap --mem`): see `step`. Its processes, those
of `kubectl exec`, probes and hooks too, join the container's namespaces like all others; only their control group is
the step's.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from isthmus.podproto.plan import Container
from isthmus.supervisor.containers.outputs import Pipes
from isthmus.supervisor.runtime import step
from isthmus.supervisor.runtime.processes import Place, Process, Processes, Program, StartError
from isthmus.supervisor.runtime.sandbox import Pod
from isthmus.support.backoff import Backoff

CONNECT_S = 60.0
# Slurm refuses steps while it is busy, as with a burst of jobs; a limit it can never give is refused as fast.
TRIES = 3
PAUSE_S, LONGEST_S = 2.0, 4.0


def step_command(name: str, memory_mib: int, node: str, path: str) -> list[str]:
    """Return srun's words for a memory step."""
    where = ["--nodes=1", "--ntasks=1", f"--nodelist={node}"] if node else ["--nodes=1", "--ntasks=1"]
    shape = [f"--job-name={name}", f"--mem={memory_mib}", "--cpu-bind=none", "--input=none", "--gres=none"]
    return ["srun", "--quiet", "--overlap", *where, *shape, sys.executable, "-I", "-m", f"{__package__}.step", path]


def refusal(memory_mib: int) -> str:
    """Say that Slurm gave no step, why that may be, and what to do."""
    return (
        f"Slurm gave no step of {memory_mib} MiB in {TRIES} tries: it is busy, or the job has less memory than its"
        " containers' limits; let restartPolicy be OnFailure, so that it is tried again, and let no --mem in the"
        " annotation slurm-job.hpk.io/flags be below the limits. srun's words: slurm.log in the pod's folder"
    )


class Step:
    """A container's programs in a step of its own.

    Args:
        pod: the pod.
        container: which of its containers; it has `memory_mib`.
    """

    def __init__(self, pod: Pod, container: Container) -> None:
        self._pod = pod
        self._container = container
        self._srun: Process | None = None
        self._socket: socket.socket | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._hearing: asyncio.Future[None] | None = None
        self._sending = asyncio.Lock()
        self._number = 0
        self._answers: dict[int, asyncio.Future[dict[str, object]]] = {}
        self._statuses: dict[int, asyncio.Future[int]] = {}

    async def open(self) -> None:
        """Have Slurm give the step.

        Raises:
            StartError: it gives none.
        """
        path = self._pod.spaces.base / f"step-{self._container.name}"
        with suppress(FileNotFoundError):
            path.unlink()
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC) as server:
            server.bind(str(path))
            server.listen(1)
            server.setblocking(False)
            connection = await self._connection(server, path)
        # Two descriptors: the streams have the other.
        self._socket = connection.dup()
        self._socket.setblocking(False)
        reader, self._writer = await asyncio.open_connection(sock=connection)
        self._hearing = asyncio.ensure_future(self._hear(reader))

    async def start(self, program: Program, place: Place, pipes: Pipes) -> Process:
        """Start a program in the container's namespaces.

        Raises:
            StartError: it cannot be started, or the step has ended.
        """
        loop = asyncio.get_running_loop()
        async with self._sending:
            number, self._number = self._number, self._number + 1
            answer = self._answers[number] = loop.create_future()
            status = self._statuses[number] = loop.create_future()
            descriptors = [*pipes.theirs, *(each for each, _ in place.namespaces), place.root or 0]
            try:
                await self._send(step.packed(number, program, place), descriptors)
            except OSError:
                self._lose()
            reply = await answer
            del self._answers[number]
        if "error" in reply:
            self._statuses.pop(number, None)
            raise StartError(str(reply["error"]))
        return Process(int(str(reply["pid"])), status)

    async def close(self) -> None:
        """Let the step end."""
        if self._hearing is not None:
            self._hearing.cancel()
        for each in (self._writer, self._socket):
            if each is not None:
                each.close()
        if self._srun is not None:
            await self._srun.ended(10.0)
            self._srun.kill(9)

    async def _send(self, message: bytes, descriptors: list[int]) -> None:
        """Send a message, the descriptors with its beginning."""
        assert self._socket is not None, "the step is open"  # noqa: S101
        while message:
            await _writable(self._socket)
            sent = socket.send_fds(self._socket, [message], descriptors)
            message, descriptors = message[sent:], []

    async def _hear(self, reader: asyncio.StreamReader) -> None:
        """Hear answers and ends; a step that was ended has taken its programs with it."""
        try:
            with suppress(OSError, ValueError):
                while line := await reader.readline():
                    reply = dict(json.loads(line))
                    number = int(reply["number"])
                    if "status" in reply:
                        _resolve(self._statuses.pop(number, None), int(reply["status"]))
                    else:
                        _resolve(self._answers.get(number), reply)
        finally:
            self._lose()

    def _lose(self) -> None:
        for answer in self._answers.values():
            _resolve(answer, {"error": "the step ended before the program did"})
        for status in self._statuses.values():
            _resolve(status, signal.SIGKILL)

    async def _connection(self, server: socket.socket, path: Path) -> socket.socket:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + CONNECT_S
        backoff = Backoff(PAUSE_S, LONGEST_S)
        for tried in range(1, TRIES + 1):
            self._srun = await self._run_srun(self._pod.processes, path)
            if (found := await self._accept(server, self._srun, deadline - loop.time())) is not None:
                return found
            if tried < TRIES:
                await asyncio.sleep(backoff.next_s())
        raise StartError(refusal(self._container.memory_mib or 0))

    async def _run_srun(self, processes: Processes, path: Path) -> Process:
        node = os.environ.get("SLURMD_NODENAME", "")
        argv = step_command(self._container.name, self._container.memory_mib or 0, node, str(path))
        # What srun has to say belongs to the job's log.
        streams = (os.open(os.devnull, os.O_RDONLY), 2, 2)
        try:
            return await processes.start(Program(argv, dict(os.environ)), Place(), streams)
        finally:
            os.close(streams[0])

    async def _accept(self, server: socket.socket, srun: Process, timeout_s: float) -> socket.socket | None:
        coming = asyncio.ensure_future(asyncio.get_running_loop().sock_accept(server))
        waited: list[asyncio.Future[object]] = [coming, srun.status]  # type: ignore[list-item]
        await asyncio.wait(waited, timeout=max(timeout_s, 0.0), return_when=asyncio.FIRST_COMPLETED)
        if coming.done():
            return coming.result()[0]
        coming.cancel()
        srun.kill(9)
        return None


def _resolve(future: asyncio.Future[Any] | None, value: object) -> None:
    if future is not None and not future.done():
        future.set_result(value)


async def _writable(connection: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()
    loop.add_writer(connection, _resolve, ready, None)
    try:
        await ready
    finally:
        loop.remove_writer(connection)
