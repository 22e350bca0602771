"""The supervisor's composition root: `python -I -m isthmus.supervisor <pod folder>`.

Exit status: 0 the pod succeeded; 1 a container failed or the pod could not start; 2 the supervisor could not start.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
import tempfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from isthmus.podproto import WINDOWS, versions
from isthmus.podproto import folder as names
from isthmus.podproto import plan as plans
from isthmus.podproto.frames import Data, Message
from isthmus.podproto.plan import Plan, PlanError
from isthmus.podproto.reasons import Reason
from isthmus.supervisor.channel import Channel
from isthmus.supervisor.containers.streams import Streams
from isthmus.supervisor.facts import Facts
from isthmus.supervisor.home import Home
from isthmus.supervisor.pod import PodRunner
from isthmus.supervisor.report import Report
from isthmus.supervisor.runtime import namespaces
from isthmus.supervisor.runtime.namespaces import PodNamespaces
from isthmus.supervisor.runtime.processes import Processes, StartError, say
from isthmus.supervisor.services import Services
from isthmus.supervisor.volumes import registry

# How long reading a log may wait for the home.
READ_S = 30.0


@dataclass(frozen=True, slots=True)
class Timing:
    """Limits, seconds.

    Attributes:
        last_word_s: for the last report, and streams still being read, to reach their readers; the files remain anyway.
        plan_s: for a job's plan to come: meanwhile it occupies nodes.
        services_s: for the cluster's Services to be reachable, while the first container is made.
    """

    last_word_s: float = 5.0
    plan_s: float = 1800.0
    services_s: float = 10.0


class Supervisor:
    """Handles the kubelet's messages.

    Args:
        folder: the pod's, on the shared home; its name is the pod's uid.
        spaces: the pod's namespaces.
        facts: where it runs.
        timing: limits.
    """

    def __init__(self, folder: Path, spaces: PodNamespaces, facts: Facts, timing: Timing = Timing()) -> None:
        self._facts, self._timing = facts, timing
        # Reports, logs and reads must not wait for one another.
        self._reports, self._logs, self._reads = Home("reports"), Home("logs"), Home("reads")
        self._report = Report(folder / names.REPORT, facts.of_pod(folder.name), self._reports.run)
        self._channel = Channel(folder, self, self._reads.call)
        self._report.changed = self._channel.report_changed
        self._pod = PodRunner(spaces, Processes(), self._report, facts.variables(), folder, self._logs.run)
        self._streams = Streams(self._channel, self._pod, partial(self._reads.call, timeout_s=READ_S))
        self._services = Services(facts.job, self._report.services_error)
        self._uid = folder.name
        self._running: asyncio.Future[int] | None = None
        self._outcome: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    async def run(self) -> int:
        """Serve until the pod has ended; return the exit status."""
        loop, last_word_s = asyncio.get_running_loop(), self._timing.last_word_s
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._terminate)
        self._report.write()
        channel = asyncio.ensure_future(self._channel.run())
        patience = loop.call_later(self._timing.plan_s, self._give_up)
        try:
            return await self._outcome
        finally:
            patience.cancel()
            await self._services.end()
            await self._channel.flushed(last_word_s)
            await self._streams.flushed(last_word_s)
            self._report.last()
            # The steps above may have used up the time; an unwritable home gets no more of it.
            await asyncio.gather(self._reports.flushed(last_word_s), self._logs.flushed(last_word_s))
            channel.cancel()
            await asyncio.gather(channel, return_exceptions=True)

    def hello(self) -> Message:
        """Return the hello."""
        of_pod = self._facts.of_pod(self._uid)
        return {
            "type": "hello",
            **versions.said(),
            "features": [WINDOWS],
            **of_pod,
            "has_plan": self._running is not None,
        }

    def report(self) -> Message:
        """Return the report as a message."""
        return {"type": "report", **self._report.content}

    async def message(self, message: Message) -> None:
        """Handle a message; failures go to the job's log."""
        kind = message["type"]
        try:
            if self._streams.knows(kind):
                self._streams.open(message)
            elif kind == "cancel":
                self._streams.cancel(int(message["stream"]))
            elif kind == "window":
                self._streams.granted(int(message["stream"]), int(message["bytes"]))
            elif kind == "plan":
                self._begin(message["plan"])
            elif kind == "stop":
                self._stop(message.get("grace_s"))
            elif kind == "update":
                await self._pod.update(plans.volumes(message["volumes"]))
            elif kind == "ephemeral":
                self._pod.add(message["container"], str(message.get("target") or ""))
            elif kind == "replace":
                self._pod.replace(str(message["name"]), message["container"])
            elif kind == "services":
                self._services.take(message)
            else:
                say(f"the kubelet sent the unknown message {kind!r}")
        except (StartError, PlanError, KeyError, ValueError) as error:
            say(f"{kind}: {error}")

    async def data(self, data: Data) -> None:
        """Handle data of a stream.

        Raises:
            FrameError: the data exceed the window.
        """
        await self._streams.data(data)

    async def gone(self) -> None:
        """Cancel the streams of a lost connection."""
        await self._streams.close()

    def _give_up(self) -> None:
        if self._running is None and not self._outcome.done():
            self._outcome.set_result(1)
            why = f"no kubelet sent a plan within {self._timing.plan_s / 60:.0f} minutes; `isthmus up` starts one"
            self._report.refuse(Reason.NO_PLAN, why)

    def _begin(self, document: Any) -> None:
        if self._running is not None or self._outcome.done():
            return
        try:
            plan = plans.read(document)
            registry.check(plan.volumes)
        except PlanError as error:
            self._outcome.set_result(1)
            self._report.refuse(Reason.PLAN, str(error))
            return
        self._running = asyncio.ensure_future(self._run(plan))
        self._running.add_done_callback(self._ended)

    async def _run(self, plan: Plan) -> int:
        return await self._pod.run(plan, asyncio.ensure_future(self._services.applied(self._timing.services_s)))

    def _ended(self, running: asyncio.Future[int]) -> None:
        if self._outcome.done():
            return
        error = running.exception()
        if error is None:
            self._outcome.set_result(running.result())
        else:
            self._outcome.set_exception(error)
            self._report.refuse(Reason.SUPERVISOR, f"{type(error).__name__}: {error}")

    def _stop(self, grace_s: Any) -> None:
        if self._running is None:
            if not self._outcome.done():
                self._outcome.set_result(1)
            self._report.pod("ended")
            return
        self._pod.stop(None if grace_s is None else float(grace_s))

    def _terminate(self) -> None:
        """Terminate the pod on Slurm's SIGTERM: KillWait is the grace period."""
        self._report.sigterm()
        self._stop(None)


async def supervise(folder: Path, spaces: PodNamespaces) -> int:
    """Run the pod of a folder."""
    return await Supervisor(folder, spaces, Facts.here(folder)).run()


def main(argv: list[str] | None = None) -> int:
    """Run a pod; see the module for the exit status."""
    words = sys.argv[1:] if argv is None else argv
    if len(words) != 1 or not Path(words[0]).is_dir():
        say("usage: python -I -m isthmus.supervisor <pod folder>")
        return 2
    # The batch script sets it too; a step or a test may not.
    os.umask(0o077)
    folder = Path(words[0]).resolve()
    base = Path(tempfile.mkdtemp(prefix=f"isthmus-{folder.name}-", dir=os.environ.get("TMPDIR", tempfile.gettempdir())))
    try:
        spaces = namespaces.hold(base)
    except (StartError, OSError) as error:
        base.rmdir()
        say(f"{socket.gethostname()} cannot run the pod: {error}")
        return 2
    try:
        return asyncio.run(supervise(folder, spaces))
    finally:
        spaces.end()
