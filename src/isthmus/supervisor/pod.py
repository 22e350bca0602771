"""Runs the pod: volumes, init containers in sequence, sidecars, containers, termination.

Once it has its plan, the pod depends on no other process. It ends with its containers, when the kubelet sends `stop`,
or when Slurm sends SIGTERM (scancel, time limit).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from isthmus.podproto import folder as names
from isthmus.podproto import plan as plans
from isthmus.podproto.plan import Container, Plan, Volume
from isthmus.podproto.reasons import Reason
from isthmus.supervisor import home
from isthmus.supervisor.containers import sharing
from isthmus.supervisor.containers.container import Runner
from isthmus.supervisor.containers.logs import LogWriter
from isthmus.supervisor.report import Exit, Report
from isthmus.supervisor.runtime import linux
from isthmus.supervisor.runtime.namespaces import PodNamespaces
from isthmus.supervisor.runtime.processes import Processes, StartError
from isthmus.supervisor.runtime.sandbox import Pod, Sandbox
from isthmus.supervisor.volumes import mounts as volumes
from isthmus.supervisor.volumes import podfiles, registry
from isthmus.supervisor.volumes.mounts import Folders


class PodRunner:
    """Runs a pod.

    Args:
        spaces: its namespaces.
        processes: starts programs.
        report: records each change.
        facts: pod_ip, pod_ips, host_ip, host_ips.
        folder: the pod's folder on the shared home; logs go there.
        run: runs writes of logs in a thread.
    """

    def __init__(
        self,
        spaces: PodNamespaces,
        processes: Processes,
        report: Report,
        facts: dict[str, str],
        folder: Path,
        run: home.Run,
    ) -> None:
        self._run_home = run
        self._spaces = spaces
        self._processes = processes
        self._report = report
        self._facts = facts
        self._folder = folder
        self._plan: Plan | None = None
        # The plan of each container's next start: its image may be replaced before.
        self._containers: dict[str, Container] = {}
        self._pod: Pod | None = None
        self._runners: dict[str, Runner] = {}
        self._tasks: dict[str, asyncio.Future[Exit]] = {}
        self._stopping: asyncio.Future[None] | None = None
        self._stop_asked = asyncio.Event()

    def runner(self, name: str) -> Runner:
        """Return a container.

        Raises:
            StartError: the pod has none of this name, or has not started it yet.
        """
        if name not in self._runners:
            raise StartError(f"container {name} has not started")
        return self._runners[name]

    @property
    def runners(self) -> list[Runner]:
        """All containers that were started."""
        return list(self._runners.values())

    async def run(self, plan: Plan, reachable: asyncio.Future[None] | None = None) -> int:
        """Run it to its end; return the exit status of the job: 0, or 1 if it failed or could not start.

        Args:
            plan: what to run.
            reachable: done when programs may start; until then their containers are made. None for at once.
        """
        self._plan = plan
        self._containers = {one.name: one for one in (*plan.init, *plan.containers)}
        for container in self._containers.values():
            self._expect(container, plan)
        self._report.write()
        pod = Pod(plan, self._spaces, Folders(self._spaces.base), self._processes, self._facts, reachable)
        try:
            self._pod = await self._prepare(pod)
        except StartError as error:
            self._report.refuse(Reason.MOUNT, str(error))
            return 1
        if not await self._initialize(plan):
            await self._finish()
            return 1
        names = [container.name for container in plan.containers]
        for name in names:
            self._begin(self._containers[name], plan.restart_policy)
        if not self._stop_asked.is_set():
            self._report.pod("running")
        ends = await asyncio.gather(*(self._tasks[name] for name in names if name in self._tasks))
        failed = self._stop_asked.is_set() and len(ends) < len(names)
        await self._finish()
        return int(failed or any(end.code for end in ends))

    def stop(self, grace_s: float | None = None) -> None:
        """Start the termination; idempotent."""
        self._stop_asked.set()
        if self._stopping is None:
            self._stopping = asyncio.ensure_future(self._stop(grace_s))
            self._report.pod("stopping")

    async def update(self, changed: Sequence[Volume]) -> None:
        """Update volumes of files.

        Raises:
            StartError: it cannot be written.
        """
        pod = self._running()
        await pod.inside(partial(volumes.update, pod.folders, changed))

    def add(self, container: object, target: str = "") -> None:
        """Start an ephemeral container, in its target's process namespace if it has one; idempotent.

        Raises:
            StartError: the pod is not running.
            PlanError: the document is invalid.
        """
        pod = self._running()
        read = plans.container(container, pod.plan.volumes)
        if read.name not in self._runners and not self._stop_asked.is_set():
            self._expect(read, pod.plan)
            self._begin(read, "Never", partial(self._sandbox_of, target) if target else None)

    def replace(self, name: str, document: object) -> None:
        """Change a container's image; a running one is restarted, whatever the restart policy.

        Args:
            name: its name.
            document: its new plan; None while the image is not available: it ends and waits.

        Raises:
            StartError: the pod has no such container.
            PlanError: the document is invalid.
        """
        plan = self._plan
        if plan is None or name not in self._containers:
            raise StartError(f"there is no container {name}")
        container = None if document is None else plans.container(document, plan.volumes)
        # A running init container is left alone, as in the upstream kubelet.
        now = self._containers[name].sidecar or name in (one.name for one in plan.containers)
        if name in self._runners:
            self._runners[name].replace(container, now=now)
        elif container is not None:
            self._containers[name] = container
            self._report.image(name, container.image_id, container.image_name)

    def _expect(self, container: Container, plan: Plan) -> None:
        name = container.image_name
        self._report.expect(container.name, container.image_id, plans.creating(plan), name)

    def _sandbox_of(self, target: str) -> Sandbox:
        sandbox = self._runners[target].sandbox if target in self._runners else None
        if sandbox is None:
            raise StartError(f"unable to find target container {target}: it does not run")
        return sandbox

    def _running(self) -> Pod:
        if self._pod is None:
            raise StartError("the pod has not started")
        return self._pod

    async def _prepare(self, pod: Pod) -> Pod:
        """Create what containers share: sandboxes' base, volumes, names."""
        plan = pod.plan
        hosts = podfiles.hosts(plan, self._facts["pod_ips"].split(","))

        def make() -> None:
            volumes.prepare(pod.folders, hosts, podfiles.resolv(plan))
            volumes.make(pod.folders, plan.volumes)
            linux.sethostname(plan.hostname)

        place = self._spaces.place()
        try:
            # A fork of this program is a noticeable part of a small pod's start.
            await self._processes.call(make, place)
            for volume in plan.volumes:
                await registry.of(volume).serve(pod, volume)
            return replace(pod, processes_of=sharing.share(place) if plan.share_pid else None)
        finally:
            place.close()

    def _begin(self, container: Container, policy: str, target: Callable[[], Sandbox] | None = None) -> Runner | None:
        if self._stop_asked.is_set():
            return None
        name = container.name
        logs = partial(LogWriter, self._folder / names.LOGS / name, run=self._run_home)
        runner = Runner(self._running(), container, policy, self._report, logs, target)
        self._runners[name] = runner
        self._tasks[name] = asyncio.ensure_future(runner.run())
        return runner

    async def _initialize(self, plan: Plan) -> bool:
        """Run init containers in order; a sidecar only has to start. Return False if the pod has failed."""
        policy = "OnFailure" if plan.restart_policy != "Never" else "Never"
        for name in [container.name for container in plan.init]:
            container = self._containers[name]
            sidecar = container.sidecar
            runner = self._begin(container, "Always" if sidecar else policy)
            if runner is None:
                return False
            task = self._tasks[name]
            if sidecar:
                began = asyncio.ensure_future(runner.began.wait())
                waited: list[asyncio.Future[Any]] = [began, task]
                await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
                began.cancel()
                if task.done():
                    return False
            elif (await task).code or self._stop_asked.is_set():
                return False
        return True

    async def _stop(self, grace_s: float | None) -> None:
        if self._pod is None:
            return
        grace_s = float(self._pod.plan.grace_s if grace_s is None else grace_s)
        sidecars = self._sidecars()
        begun = asyncio.get_running_loop().time()
        others = [runner for runner in self.runners if runner not in sidecars]
        await asyncio.gather(*(runner.stop(grace_s) for runner in others))
        left_s = max(grace_s - (asyncio.get_running_loop().time() - begun), min(grace_s, 2.0))
        await self._stop_in_turn(sidecars, left_s)

    async def _finish(self) -> None:
        """Stop sidecars and ephemeral containers after all others have ended, then report the end."""
        grace_s = float(self._running().plan.grace_s)
        sidecars = self._sidecars()
        rest = [runner for runner in self.runners if runner not in sidecars]
        await asyncio.gather(*(runner.stop(grace_s) for runner in rest))
        await self._stop_in_turn(sidecars, grace_s)
        if self._stopping is not None:
            await self._stopping
        await asyncio.gather(*self._tasks.values())
        self._report.pod("ended")

    def _sidecars(self) -> list[Runner]:
        return [runner for runner in self.runners if runner.container.sidecar]

    async def _stop_in_turn(self, sidecars: list[Runner], grace_s: float) -> None:
        # In reverse order of their starts.
        for runner in reversed(sidecars):
            await runner.stop(grace_s)
            await asyncio.wait([self._tasks[runner.name]])
