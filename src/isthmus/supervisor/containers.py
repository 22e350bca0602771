"""One container of the pod through all its starts: restarts with a pause, probes, hooks, and its end.

A start: sandbox, program, postStart, then probes, until the program ends or is asked to end; then nothing of it is left
but its log and its report.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from . import cgroups, clock, expansion, outputs, probes
from .backoff import BackOff
from .logs import LogWriter
from .output import Output
from .plan import Action, Container, Probe
from .processes import Process, Program, StartError
from .report import Exit, Report
from .sandbox import Pod, Sandbox, identity, open_sandbox, termination_message
from .steps import Step, start_mpi

# What a termination message may have (kubelet's limits).
MESSAGE_BYTES = 4096
LOG_MESSAGE_BYTES, LOG_MESSAGE_LINES = 2048, 80
# A hook after the start has no limit in Kubernetes; a forgotten one shall not hold a job for ever.
POST_START_S = 600.0
_CANNOT_START = 128
_ONE_ID = "only uid 0 exists in this user's containers; have the admin give the user ids in /etc/subuid and /etc/subgid"


def restarts(policy: str, code: int) -> bool:
    """Tell whether a container that ended so is started again."""
    return policy == "Always" or (policy == "OnFailure" and code != 0)


class Runner:
    """Runs one container.

    Args:
        pod: what it is part of.
        container: its plan.
        policy: Always, OnFailure or Never.
        report: is told of each change.
        logs: the folder of its logs.
    """

    def __init__(self, pod: Pod, container: Container, policy: str, report: Report, logs: Path) -> None:
        self.container = container
        self.name = container["name"]
        self.output: Output | None = None
        self.log: LogWriter | None = None
        self.previous: LogWriter | None = None
        self.began = asyncio.Event()
        self.exit: Exit | None = None
        self.main: Process | None = None
        self._pod = pod
        self._policy = policy
        self._report = report
        self._logs = logs
        self.sandbox: Sandbox | None = None
        self.since: str | None = None
        self._stopping = asyncio.Event()
        self._ending: asyncio.Future[None] | None = None
        self._blamed: Exit | None = None
        self._restart = 0

    @property
    def address(self) -> str:
        """The pod's address, for probes."""
        return self._pod.facts["pod_ip"]

    async def run(self) -> Exit:
        """Run it until it is not started again; return how it ended last."""
        back_off = BackOff()
        while True:
            begun = time.monotonic()
            self.exit = await self._once()
            self._report.terminated(self.name, self.exit)
            if self._stopping.is_set() or not restarts(self._policy, self.exit.code):
                return self.exit
            pause_s = back_off.pause_s(time.monotonic() - begun)
            if pause_s:
                why = f"back-off {pause_s:.0f}s restarting failed container={self.name}"
                self._report.waiting(self.name, "CrashLoopBackOff", why)
                with suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(self._stopping.wait(), pause_s)
                    self._report.terminated(self.name, self.exit)
                    return self.exit
            self._restart += 1
            self._report.restarted(self.name)

    async def stop(self, grace_s: float) -> None:
        """Have it end and not start again: preStop, SIGTERM, and SIGKILL after the grace; returns when it has."""
        self._stopping.set()
        if self._ending is None and self.main is not None:
            self._end(grace_s)
        if self._ending is not None:
            await asyncio.wait([self._ending])

    async def run_in(self, program: Program, pipes: outputs.Pipes) -> Process:
        """Start a program in the container.

        Raises:
            StartError: it does not run, or the program cannot be started.
        """
        if self.sandbox is None:
            raise StartError(f"container {self.name} is not running")
        return await self._pod.processes.start(self.checked(program), self.sandbox.place, pipes.theirs)

    def checked(self, program: Program) -> Program:
        """Return the program.

        Raises:
            StartError: the pod has no ids for its user.
        """
        who = program.identity
        if who is not None and (who.uid or who.gid) and not self._pod.spaces.many_ids:
            raise StartError(_ONE_ID)
        return program

    def program(self, argv: list[str], *, terminal: bool = False) -> Program:
        """Return a command with the container's variables, folder and user."""
        told = expansion.environment(self.container["env"], self._pod.facts)
        user = identity(self.container)
        usual = {"HOSTNAME": self._pod.plan["hostname"], "HOME": "/root" if user.uid == 0 else "/"}
        env = {**usual, **({"TERM": "xterm"} if terminal else {}), **told}
        return Program(argv, env, self.container["cwd"] or "/", user, terminal)

    async def ask(self, argv: list[str], timeout_s: float) -> tuple[int, str]:
        """Run a program in the container; return its exit code and the beginning of what it wrote."""
        pipes = outputs.pipes(stdin=False)
        said: list[bytes] = []
        _, stdout, stderr = pipes.ours
        pumps: list[asyncio.Future[None]] = []
        process: Process | None = None
        try:
            try:
                process = await self.run_in(self.program(argv), pipes)
            except StartError as error:
                return _CANNOT_START, str(error)
            finally:
                pipes.close_theirs()
            pumps = [asyncio.ensure_future(outputs.pump(each, said.append)) for each in (stdout, stderr or 0)]
            await process.ended()
            await asyncio.wait(pumps, timeout=0.1)
            return Exit.of_status(process.status.result()).code, b"".join(said)[:4096].decode(errors="replace")
        finally:
            # Also when the one who asks has given up.
            if process is not None:
                process.kill(signal.SIGKILL)
            for pump in pumps:
                pump.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)
            for descriptor in (stdout, stderr or 0):
                os.close(descriptor)

    async def _once(self) -> Exit:
        self._report.waiting(self.name, "ContainerCreating")
        self._blamed = self._ending = None
        self.previous, self.log = self.log, LogWriter(self._logs, self._restart)
        try:
            self.sandbox = await open_sandbox(self._pod, self.container)
        except StartError as error:
            self.log.close()
            return Exit(_CANNOT_START, reason="ContainerCannotRun", message=str(error))
        try:
            return await self._run_program(self.sandbox, self.log)
        finally:
            sandbox, self.sandbox = self.sandbox, None
            await sandbox.close()

    async def _run_program(self, sandbox: Sandbox, log: LogWriter) -> Exit:
        told = self.container
        streams = {"tty": told["tty"], "stdin": told["stdin"], "stdin_once": told["stdin_once"]}
        output = Output(log, **streams)
        argv = [expansion.expand(word, self.program([]).env) for word in told["argv"]]
        if self._stopping.is_set():
            await output.close()
            return Exit(137, signal.SIGKILL)
        step = Step(self._pod, told) if told["memory_mib"] is not None else None
        try:
            process = await self._start(self.program(argv, terminal=told["tty"]), output.pipes, sandbox, step)
        except StartError as error:
            output.pipes.close_theirs()
            await output.close()
            return Exit(_CANNOT_START, reason="StartError", message=str(error))
        memory = cgroups.memory_folder(process.pid)
        killed = cgroups.oom_kills(memory)
        output.begin()
        self.output, self.main, self.since = output, process, clock.now()
        self._report.running(self.name)
        care = asyncio.ensure_future(self._care())
        await process.ended()
        care.cancel()
        await asyncio.gather(care, return_exceptions=True)
        self.main = None
        ended = Exit.of_status(process.status.result())
        output.code = ended.code
        if ended.signal == signal.SIGKILL and cgroups.oom_kills(memory) > killed:
            ended = Exit(ended.code, ended.signal, "OOMKilled")
        if step is not None:
            await step.close()
        await output.close()
        return await self._with_message(ended, sandbox, log)

    async def _start(self, program: Program, pipes: outputs.Pipes, sandbox: Sandbox, step: Step | None) -> Process:
        if self.container["mpi"]:
            return await start_mpi(self._pod, self.container, program, pipes)
        if step is not None:
            return await step.start(self.checked(program), sandbox.place, pipes)
        return await self.run_in(program, pipes)

    async def _with_message(self, ended: Exit, sandbox: Sandbox, log: LogWriter) -> Exit:
        if self._blamed is not None and self._blamed.message:
            return Exit(ended.code, ended.signal, self._blamed.reason, self._blamed.message)
        message = await termination_message(self._pod, self.container, sandbox, MESSAGE_BYTES)
        if not message and ended.code and self.container["termination_policy"] == "FallbackToLogsOnError":
            message = log.tail(LOG_MESSAGE_BYTES, LOG_MESSAGE_LINES)
        return Exit(ended.code, ended.signal, ended.reason, message)

    async def _care(self) -> None:
        """Hook and probes of one start; cancelled when the program ends."""
        hook = self.container["post_start"]
        if hook is not None:
            why = await probes.failure(hook, self, POST_START_S)
            if why:
                self._blamed = Exit(0, reason="PostStartHookError", message=f"postStart hook: {why}")
                self._end(self._pod.plan["grace_s"])
                return
        startup = self.container["startup"]
        if startup is not None:
            await probes.watch(startup, self, None, lambda well, why: self._judge(startup, well))
            if self._ending is not None:
                return
        self._report.health(self.name, is_started=True)
        self.began.set()
        watches = [self._watch_ready(), self._watch_alive()]
        await asyncio.gather(*watches)

    async def _watch_ready(self) -> None:
        probe = self.container["readiness"]
        if probe is None:
            self._report.health(self.name, ready=True)
            return

        def told(well: bool, why: str) -> bool:
            self._report.health(self.name, ready=well)
            return True

        await probes.watch(probe, self, False, told)

    async def _watch_alive(self) -> None:
        probe = self.container["liveness"]
        if probe is not None:
            await probes.watch(probe, self, True, lambda well, why: well or self._judge(probe, well))

    def _judge(self, probe: Probe, well: bool) -> bool:
        if not well:
            grace_s = self._pod.plan["grace_s"] if probe["grace_s"] is None else probe["grace_s"]
            self._end(grace_s)
        return False

    def _end(self, grace_s: float) -> None:
        if self._ending is None and self.main is not None:
            self._ending = asyncio.ensure_future(self._terminate(self.main, self.container["pre_stop"], grace_s))

    async def _terminate(self, main: Process, hook: Action | None, grace_s: float) -> None:
        deadline = time.monotonic() + grace_s
        if hook is not None and grace_s > 0:
            asking = asyncio.ensure_future(probes.failure(hook, self, grace_s))
            waited: list[asyncio.Future[Any]] = [asking, main.status]
            await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
            asking.cancel()
        main.kill(signal.SIGTERM)
        # Kubernetes gives two more seconds to one whose hook took all.
        left_s = max(deadline - time.monotonic(), 2.0 if hook is not None and grace_s else 0.0)
        if not await main.ended(left_s):
            main.kill(signal.SIGKILL)
            await main.ended()
