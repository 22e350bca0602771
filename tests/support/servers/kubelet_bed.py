"""A whole kubelet on a real API server; Slurm, supervisors and registries are fakes."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from isthmus.images.errors import UnknownImageError
from isthmus.images.workspace import Workspace
from isthmus.kubelet.main import Kubelet
from isthmus.kubelet.pods.decision.state import Pauses
from isthmus.kubelet.settings import Settings
from isthmus.model.images import Pulled, Reference
from isthmus.model.network import Driver
from isthmus.model.pod_inputs import PodSettings
from isthmus.model.pod_job import JobState
from tests.support.fakes.pod_jobs import OFFER, FakeSlurm
from tests.support.fakes.supervisor import FakeSupervisor
from tests.support.servers.api_server import NODE, ApiServer
from tests.support.wait import wait

DIGEST = "sha256:" + "a" * 64
FINISHED = "2026-01-01T00:00:09Z"
FAST = Pauses(retry=(0.1, 0.5), refused=(0.2, 0.5), connect=4.0, margin=1.0, gang=3.0, refresh=0.5)


def pull(image: Reference, place: Workspace) -> Pulled:
    """Make an empty image of any name but `missing`."""
    if "missing" in image.place:
        raise UnknownImageError(f"there is no image {image}; check its name and tag")
    place.cache.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = place.cache / f"{DIGEST.replace(':', '-')}.2.squashfs"
    path.touch()
    config = place.cache / ".config" / f"{DIGEST.replace(':', '-')}.json"
    config.parent.mkdir(exist_ok=True)
    config.write_text(json.dumps({"Cmd": ["sh"]}))
    return Pulled(1, str(image), DIGEST, path, 0, False, 0.0)


class Bed:
    """The kubelet may die and come back; Slurm, supervisors and API server stay."""

    def __init__(self, server: ApiServer, home: Path, driver: Driver = Driver.NONE) -> None:
        self.server, self.home = server, home
        self.slurm = FakeSlurm()
        self.slurm.started, self.slurm.cancelled = self._job_started, self._job_cancelled
        self.supervisors: dict[str, FakeSupervisor] = {}
        self.autorun = True
        self._supervising: list[Future[None]] = []
        cluster = home / ".isthmus/cluster"
        cluster.mkdir(parents=True)
        (cluster / "pki").symlink_to(server.pki)
        (cluster / "kubelet.kubeconfig").write_text(server.kubeconfig("kubelet").read_text())
        pods = PodSettings(NODE, str(home), str(home / ".isthmus/pods"), driver=driver)
        self._settings = Settings(cluster, "127.0.0.1", 0, 0, Path("/usr"), server.version, home / "disk", pods)
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start the kubelet."""
        self._run(self._started())

    def kill(self) -> None:
        """Let the kubelet die: nothing is said to anybody."""
        self._run(self._killed())

    def close(self) -> None:
        """End everything."""
        self.kill()
        for one in self._supervising:
            one.cancel()
        for supervisor in self.supervisors.values():
            self._run(supervisor.leave())
            assert not supervisor.unknown, supervisor.unknown
        self._loop.call_soon_threadsafe(self._loop.stop)

    def folder(self, pod: dict[str, Any]) -> Path:
        """Return a pod's folder."""
        return self.home / ".isthmus/pods" / pod["metadata"]["uid"]

    def supervisor(self, pod: dict[str, Any]) -> FakeSupervisor:
        """Return a pod's supervisor, with its plan, as soon as it has one."""
        uid = pod["metadata"]["uid"]
        wait(lambda: uid in self.supervisors and bool(self.supervisors[uid].plans), timeout_s=60, interval_s=0.02)
        return self.supervisors[uid]

    def report(self, pod: dict[str, Any], phase: str, **state: Any) -> None:
        """Have a pod's containers be in a state."""
        names = [one["name"] for one in pod["spec"]["containers"]]
        self._run(self.supervisor(pod).report(phase, {name: container(**state) for name in names}))

    def say(self, pod: dict[str, Any], phase: str, containers: dict[str, Any]) -> None:
        """Have a pod's supervisor report what it likes."""
        self._run(self.supervisor(pod).report(phase, containers))

    def hang_up(self, pod: dict[str, Any]) -> None:
        """Break a supervisor's connection; it comes back."""
        self._loop.call_soon_threadsafe(self.supervisor(pod).writer.close)

    def exit(self, pod: dict[str, Any], code: int = 0) -> None:
        """Have a pod's containers, and then its job, end."""
        ended = {"state": "terminated", "reason": "Error" if code else "Completed", "exit_code": code, "ready": False}
        self.report(pod, "ended", **ended, finished=FINISHED)
        self.slurm.end(self.supervisor(pod).job, JobState.FAILED if code else JobState.COMPLETED)

    def end_well(self, pod: dict[str, Any]) -> str:
        """Have a pod's containers and then the pod end with 0 on Slurm's SIGTERM; return the job, which still runs."""
        ended = container(state="terminated", reason="Completed", exit_code=0, ready=False, finished=FINISHED)
        names = [one["name"] for one in pod["spec"]["containers"]]
        for phase in ("stopping", "ended"):
            self._run(self.supervisor(pod).report(phase, dict.fromkeys(names, ended), sigterm=True))
        return self.supervisor(pod).job

    def _run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(60)

    async def _started(self) -> None:
        kubelet = Kubelet(self._settings, self.slurm, lambda: OFFER, pull, FAST, rooms=self.slurm.rooms)
        self._task = asyncio.create_task(kubelet.run(asyncio.Event()))
        while not kubelet.port:
            await asyncio.sleep(0.01)
            if self._task.done():
                self._task.result()

    async def _killed(self) -> None:
        if self._task:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    def _job_started(self, number: str, uid: str) -> None:
        if self.autorun:
            self._supervising.append(asyncio.run_coroutine_threadsafe(self._supervise(number, uid), self._loop))

    async def _supervise(self, number: str, uid: str) -> None:
        """Behave as a pod that runs until it is stopped, and dials again when the kubelet has gone."""
        supervisor = FakeSupervisor(self.home / ".isthmus/pods" / uid, number)
        self.supervisors.setdefault(uid, supervisor)

        async def planned() -> None:
            known = {one["name"]: container(image_name=one["image_name"]) for one in supervisor.plans[-1]["containers"]}
            await supervisor.report("running", known)

        async def stopped() -> None:
            names = [one["name"] for one in supervisor.plans[-1]["containers"]] if supervisor.plans else []
            now = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
            ended = container(state="terminated", reason="Error", exit_code=143, ready=False, finished=now)
            await supervisor.report("ended", dict.fromkeys(names, ended))
            self.slurm.end(number)

        supervisor.on_plan, supervisor.on_stop = planned, stopped
        supervisor.on_replace = partial(replace, supervisor)
        while not supervisor.stops:
            with suppress(OSError):
                await supervisor.connect()
                await supervisor.closed.wait()
            await supervisor.leave()
            await asyncio.sleep(0.2)
            if self.slurm.jobs[number].job.state.ended:
                return

    def _job_cancelled(self, number: str) -> None:
        self.slurm.end(number, JobState.CANCELLED)


async def replace(supervisor: FakeSupervisor, name: str, reported: dict[str, Any] | None) -> None:
    """Report what becomes of a container that gets another image, or waits for one."""
    known = supervisor.last["containers"]
    restarts = known[name]["restarts"]
    if reported:
        now = container(image_name=reported["image_name"], restarts=restarts + 1)
    else:
        last = known[name] | {"exit_code": 143}
        now = container(image_name="", image_id="", state="waiting", last=last, restarts=restarts)
    await supervisor.report("running", {**known, name: now})


def container(**changes: Any) -> dict[str, Any]:
    """Return a running container of a report, but for some changes."""
    running = {
        "state": "running",
        "reason": "",
        "message": "",
        "exit_code": None,
        "signal": None,
        "started": "2026-01-01T00:00:01Z",
        "finished": None,
        "restarts": 0,
        "is_started": True,
        "ready": True,
        "image_id": f"docker.io/library/web@{DIGEST}",
        "last": None,
    }
    return {**running, **changes}
