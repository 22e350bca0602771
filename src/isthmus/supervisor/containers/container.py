"""Runs one container of the pod: starts, restarts with a back-off, probes, hooks and termination.

A start: sandbox, program, postStart, then probes, until the program ends or is stopped. After it only
its log and its report remain.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Literal

from isthmus.podproto import expansion
from isthmus.podproto.plan import Action, Container, Probe, creating
from isthmus.podproto.reasons import Reason
from isthmus.supervisor import clock
from isthmus.supervisor.containers import outputs, probes
from isthmus.supervisor.containers.backoff import BackOff
from isthmus.supervisor.containers.desired import Desired
from isthmus.supervisor.containers.logs import LogWriter
from isthmus.supervisor.containers.output import Output
from isthmus.supervisor.report import Exit, Report
from isthmus.supervisor.runtime import cgroups, seccomp
from isthmus.supervisor.runtime.processes import Process, Program, StartError
from isthmus.supervisor.runtime.ranks import Ranks
from isthmus.supervisor.runtime.sandbox import Pod, Sandbox, identity, open_sandbox, termination_message
from isthmus.supervisor.runtime.steps import Step

# Limits of a termination message, as in the upstream kubelet.
MESSAGE_BYTES = 4096
LOG_MESSAGE_BYTES, LOG_MESSAGE_LINES = 2048, 80
# Kubernetes has no limit for postStart; here a hanging one must not hold a job for ever.
POST_START_S = 600.0
# How often the count of processes that the kernel ended is read.
MEMORY_LOOK_S = 2.0
_CANNOT_START = 128
_ONE_ID = "only uid 0 exists in this user's containers; have the admin give the user ids in /etc/subuid and /etc/subgid"


def restarts(policy: str, code: int) -> bool:
    """Return whether a container is restarted after this end."""
    return policy == "Always" or (policy == "OnFailure" and code != 0)


class Runner:
    """Runs one container.

    Args:
        pod: that it belongs to.
        container: its plan.
        policy: Always, OnFailure or Never.
        report: records each change.
        logs: returns the log of a start by its number.
        target: returns the container whose process namespace it shares; None for its own.
    """

    def __init__(
        self,
        pod: Pod,
        container: Container,
        policy: str,
        report: Report,
        logs: Callable[[int], LogWriter],
        target: Callable[[], Sandbox] | None = None,
    ) -> None:
        self.container = container
        self.name = container.name
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
        self._calls = b""
        self._target = target
        self.sandbox: Sandbox | None = None
        self.since: str | None = None
        self._desired = Desired()
        self._grace_s = float(pod.plan.grace_s)
        self._ending: asyncio.Future[None] | None = None
        self._blamed: Exit | None = None
        self._restart = 0
        self._step: Step | None = None
        self._ranks: Ranks | None = None
        self._left: Sandbox | None = None

    @property
    def address(self) -> str:
        """The pod's address, for probes."""
        return self._pod.facts["pod_ip"]

    async def run(self) -> Exit:
        """Run it until it is not restarted any more; return its last end."""
        back_off = BackOff()
        while True:
            begun = time.monotonic()
            try:
                self.exit = await self._once()
                again = self._report_end(self.exit)
            finally:
                # Apptainer ends slowly; the program's exit status is reported before.
                await self._close()
            if again and not self._desired.stop:
                await self._pause(0.0 if self._desired.replace else back_off.pause_s(time.monotonic() - begun))
            if self._desired.stop or not again:
                self._report.stays(self.name)
                return self.exit
            if (another := self._desired.taken()) is not None:
                self.container, back_off = another, BackOff()
            self._restart += 1
            self._report.restarted(self.name)
            self._report.image(self.name, self.container.image_id, self.container.image_name)

    async def stop(self, grace_s: float) -> None:
        """Terminate it: preStop, SIGTERM, and SIGKILL after the grace period; returns when it has ended."""
        self._desired.end()
        self._grace_s = grace_s
        self._end(grace_s)
        if self._ending is not None:
            await asyncio.wait([self._ending])

    def replace(self, container: Container | None, *, now: bool) -> None:
        """Restart it with another image.

        Args:
            container: its new plan; None while the image is not available: it ends and waits.
            now: whether to end it for this, or to use the image at its next restart.
        """
        same = container is not None and container.image_name == self.container.image_name
        if (same and not self._desired.replace) or not (now or container):
            return
        self._desired.change(container, now=now)
        if now and self.main is not None and self._ending is None:
            self._report.killing(self.name, f"Container {self.name} definition changed, will be restarted")
            self._end(self._grace_s)

    async def run_in(self, program: Program, pipes: outputs.Pipes) -> Process:
        """Start a program in the container.

        Raises:
            StartError: the container is not running, or the program cannot be started.
        """
        if self.sandbox is None:
            raise StartError(f"container {self.name} is not running")
        if self._step is not None:
            return await self._step.start(self.checked(program), self.sandbox.place, pipes)
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

    def program(self, argv: Sequence[str], *, terminal: bool = False) -> Program:
        """Return a command with the container's variables, folder and user."""
        variables = expansion.environment(self.container.env, self._pod.facts)
        user = replace(identity(self.container), calls=self._calls)
        usual = {"HOSTNAME": self._pod.plan.hostname, "HOME": "/root" if user.uid == 0 else "/"}
        env = {**usual, **({"TERM": "xterm"} if terminal else {}), **variables}
        return Program(list(argv), env, self.container.cwd or "/", user, terminal)

    async def ask(self, argv: Sequence[str], timeout_s: float) -> tuple[int, str]:
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
            # Also after the caller was cancelled.
            if process is not None:
                process.kill(signal.SIGKILL)
            for pump in pumps:
                pump.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)
            for descriptor in (stdout, stderr or 0):
                os.close(descriptor)

    def _report_end(self, ended: Exit) -> bool:
        """Report its end; return whether it is restarted."""
        if self._desired.replace and not self._desired.stop:
            self._report.replaced(self.name, ended, creating(self._pod.plan))
            return True
        self._report.terminated(self.name, ended)
        return restarts(self._policy, ended.code)

    async def _pause(self, pause_s: float) -> None:
        if pause_s:
            why = f"back-off {pause_s:.0f}s restarting failed container={self.name}"
            self._report.waiting(self.name, Reason.CRASH_LOOP, why)
            await self._desired.pause(pause_s)
        if self._desired.is_held and not self._desired.stop:
            # The kubelet knows the reason: it pulls the image.
            self._report.waiting(self.name, "")
            self._report.image(self.name, "", "")
            await self._desired.another()

    async def _once(self) -> Exit:
        self._report.waiting(self.name, creating(self._pod.plan))
        self._blamed = self._ending = None
        self.previous, self.log = self.log, self._logs(self._restart)
        try:
            self._calls = self._filter()
            target = self._target() if self._target else None
            if self.container.mpi:
                self._ranks = Ranks(self._pod, self.container)
                self._ranks.open()
            sandbox = await open_sandbox(self._pod, self.container, target)
        except (StartError, seccomp.SeccompError) as error:
            self.log.close()
            return Exit(_CANNOT_START, reason=Reason.CANNOT_RUN, message=str(error))
        try:
            await self._pod.reached()
            # Only now: kubectl exec is refused before the container's program starts.
            self.sandbox = sandbox
            return await self._run_program(sandbox, self.log)
        finally:
            self._left, self.sandbox = sandbox, None

    def _filter(self) -> bytes:
        path = self.container.seccomp
        return b"" if path is None else seccomp.load(path, identity(self.container).capabilities)

    async def _run_program(self, sandbox: Sandbox, log: LogWriter) -> Exit:
        wanted = self.container
        streams = {"tty": wanted.tty, "stdin": wanted.stdin, "stdin_once": wanted.stdin_once}
        output = Output(log, **streams)
        argv = [expansion.expand(word, self.program([]).env) for word in wanted.argv]
        if self._desired.stop:
            await output.close()
            return Exit(137, signal.SIGKILL)
        try:
            process = await self._start(self.program(argv, terminal=wanted.tty), output.pipes)
        except StartError as error:
            output.pipes.close_theirs()
            await output.close()
            return Exit(_CANNOT_START, reason=Reason.START, message=str(error))
        memory = cgroups.OomKills(cgroups.memory_folder(process.pid))
        output.begin()
        self.output, self.main, self.since = output, process, clock.now()
        if self._desired.stop or self._desired.replace:
            self._end(self._grace_s)
        begins_well = wanted.post_start is None and wanted.startup is None
        self._report.running(self.name, is_started=begins_well, ready=begins_well and wanted.readiness is None)
        cares = [
            asyncio.ensure_future(each)
            for each in (self._care(asyncio.get_running_loop().time()), self._watch_memory(memory))
        ]
        await process.ended()
        for care in cares:
            care.cancel()
        await asyncio.gather(*cares, return_exceptions=True)
        self.main = None
        ended = Exit.of_status(process.status.result())
        more = memory.more()
        if memory.total and (self._has_own_memory or ended.signal == signal.SIGKILL):
            ended = Exit(ended.code, ended.signal, Reason.OOM_KILLED)
        elif more and self._reports_memory:
            self._report.oom_kills(self.name, more)
        # Remaining processes end with the program, as with process 1 of a container elsewhere.
        sandbox.kill(spared=sandbox.keepers)
        await output.close()
        return await self._with_message(ended, sandbox, log)

    async def _close(self) -> None:
        """Release the resources of one start."""
        step, self._step = self._step, None
        ranks, self._ranks = self._ranks, None
        left, self._left = self._left, None
        if step is not None:
            await step.close()
        if ranks is not None:
            await ranks.close()
        if left is not None:
            await left.close()

    async def _start(self, program: Program, pipes: outputs.Pipes) -> Process:
        if self._ranks is not None:
            wrapper = self._ranks.behind_wrapper(program)
            return await (self.run_in(wrapper, pipes) if wrapper else self._ranks.start(program, pipes.theirs))
        if self.container.memory_mib is not None:
            self._step = Step(self._pod, self.container)
            await self._step.open()
        return await self.run_in(program, pipes)

    @property
    def _has_own_memory(self) -> bool:
        """Whether what the kernel counts is this container's alone: a step of its own, or a job of one container."""
        return self.container.memory_mib is not None or len(self._pod.plan.containers) == 1

    @property
    def _reports_memory(self) -> bool:
        """Whether kills that its own end does not show are reported of this container: what all share, of the first."""
        return self._has_own_memory or self.name == self._pod.plan.containers[0].name

    async def _watch_memory(self, kills: cgroups.OomKills) -> None:
        """Report processes that the kernel ended while the program goes on, as sshd does without its ranks."""
        while self._reports_memory:
            await asyncio.sleep(MEMORY_LOOK_S)
            if more := kills.more():
                self._report.oom_kills(self.name, more)

    async def _with_message(self, ended: Exit, sandbox: Sandbox, log: LogWriter) -> Exit:
        if self._blamed is not None and self._blamed.message:
            return Exit(ended.code, ended.signal, self._blamed.reason, self._blamed.message)
        message = await termination_message(self._pod, self.container, sandbox, MESSAGE_BYTES)
        if not message and ended.code and self.container.termination_policy == "FallbackToLogsOnError":
            message = log.tail(LOG_MESSAGE_BYTES, LOG_MESSAGE_LINES)
        return Exit(ended.code, ended.signal, ended.reason, message)

    async def _care(self, started_s: float) -> None:
        """Hook and probes of one start, from the moment the program runs; cancelled when it ends."""
        hook = self.container.post_start
        if hook is not None:
            why = await probes.failure(hook, self, POST_START_S)
            if why:
                self._blamed = Exit(0, reason=Reason.POST_START, message=f"postStart hook: {why}")
                self._end(self._pod.plan.grace_s)
                return
        await self._watch("startup", None, started_s)
        if self._ending is not None:
            return
        self._report.health(self.name, is_started=True)
        self.began.set()
        if self.container.readiness is None:
            self._report.health(self.name, ready=True)
        await asyncio.gather(self._watch("readiness", False, started_s), self._watch("liveness", True, started_s))

    async def _watch(
        self, kind: Literal["startup", "liveness", "readiness"], well: bool | None, begun_s: float
    ) -> None:
        probe: Probe | None = getattr(self.container, kind)
        if probe is None:
            return
        # A random delay within the first period, as in the upstream kubelet.
        least_s = probe.period_s if kind == "liveness" else 0

        def judged(changes: bool, well: bool, why: str) -> bool:
            ends = changes and not well and kind != "readiness"
            if why:
                self._report.unhealthy(self.name, kind, why, self._killing(kind) if ends else "")
            if ends:
                self._end(self._pod.plan.grace_s if probe.grace_s is None else probe.grace_s)
            elif changes and kind == "readiness":
                self._report.health(self.name, ready=well)
            return not (ends or (changes and kind == "startup"))

        await probes.watch(probe, self, well, begun_s + max(probe.initial_delay_s, least_s), judged)

    def _killing(self, kind: str) -> str:
        again = "" if self._policy == "Never" or self._desired.stop else ", will be restarted"
        return f"Container {self.name} failed {kind} probe{again}"

    def _end(self, grace_s: float) -> None:
        if self._ending is None and self.main is not None:
            self._ending = asyncio.ensure_future(self._terminate(self.main, self.container.pre_stop, grace_s))

    async def _terminate(self, main: Process, hook: Action | None, grace_s: float) -> None:
        deadline = time.monotonic() + grace_s
        if hook is not None and grace_s > 0:
            asking = asyncio.ensure_future(probes.failure(hook, self, grace_s))
            waited: list[asyncio.Future[Any]] = [asking, main.status]
            await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
            asking.cancel()
        main.kill(signal.SIGTERM)
        # Kubernetes grants two more seconds if the hook used up the grace period.
        left_s = max(deadline - time.monotonic(), 2.0 if hook is not None and grace_s else 0.0)
        if not await main.ended(left_s):
            main.kill(signal.SIGKILL)
            await main.ended()
