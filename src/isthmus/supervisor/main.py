"""`python -I -m isthmus.supervisor <pod folder>`: everything wired together.

Exit status: 0 the pod succeeded; 1 a container failed or the pod could not start; 2 it cannot be supervised at all.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
import tempfile
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

# How long the last report may take to reach the kubelet, and what somebody still reads him; the files are there anyway.
LAST_WORD_S = 5.0
# How long a job stays that no kubelet tells what to run: it holds nodes that others wait for.
PLAN_S = 1800.0
# How long the first container waits for the cluster's Services to be reachable.
SERVICES_S = 10.0
# How long a reader of a log waits for the home.
READ_S = 30.0


class Supervisor:
    """Answers the kubelet.

    Args:
        folder: the pod's, on the shared home; its name is the pod's uid.
        spaces: the pod's namespaces.
        facts: where it runs.
    """

    def __init__(self, folder: Path, spaces: PodNamespaces, facts: Facts) -> None:
        self._facts = facts
        # What waits for a sync, for room in a log, and for what is read, do not wait for one another.
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
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._terminate)
        self._report.write()
        channel = asyncio.ensure_future(self._channel.run())
        patience = loop.call_later(PLAN_S, self._give_up)
        try:
            return await self._outcome
        finally:
            patience.cancel()
            await self._services.end()
            await self._channel.settled(LAST_WORD_S)
            await self._streams.settled(LAST_WORD_S)
            self._report.last()
            # Others may have taken all of these seconds; a home that takes nothing gets no more of them.
            await asyncio.gather(self._reports.settled(LAST_WORD_S), self._logs.settled(LAST_WORD_S))
            channel.cancel()
            await asyncio.gather(channel, return_exceptions=True)

    def hello(self) -> Message:
        """Say who this is."""
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
        """Do what the kubelet says; what cannot be done is said in the job's log."""
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
                say(f"the kubelet says {kind!r}, which this supervisor does not know")
        except (StartError, PlanError, KeyError, ValueError) as error:
            say(f"{kind}: {error}")

    async def data(self, data: Data) -> None:
        """Take bytes of a stream.

        Raises:
            FrameError: more than its window has.
        """
        await self._streams.data(data)

    async def gone(self) -> None:
        """End the streams of a connection that is gone."""
        await self._streams.close()

    def _give_up(self) -> None:
        if self._running is None and not self._outcome.done():
            self._outcome.set_result(1)
            why = f"no kubelet said within {PLAN_S / 60:.0f} minutes what to run; `isthmus up` starts one"
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
        await self._services.settled(SERVICES_S)
        return await self._pod.run(plan)

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
        """Slurm ends the job: its own patience (KillWait) is the grace."""
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
    # The job's script says so too; a step or a test may start this otherwise.
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
