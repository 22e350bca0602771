"""How much memory has a kubelet with many pods, and how soon has the next one all of them when it dies?

A real kubelet on a real API server. Slurm's commands are stand-ins, and so are the supervisors, all in this process:
more pods than a test bed has memory for. tests/bench/pods_resident does the same with real ones.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.bench.results import save
from tests.support.fakes.supervisor import FakeSupervisor
from tests.support.servers import kubelet_bed
from tests.support.servers.api_server import api_server
from tests.support.servers.api_user import KubeUser
from tests.support.servers.kubelet_process import IMAGE, Process, cache

LIMIT_S = 900.0


class Pods:
    """Supervisors that run until this process ends, and dial again when the kubelet has gone."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self.connected: set[str] = set()
        self.planned: set[str] = set()

    async def until(self, count: int) -> None:
        """Wait until so many are connected and know what to run; new jobs get a supervisor."""
        async with asyncio.timeout(LIMIT_S):
            while len(self.connected & self.planned) < count:
                for job in self._folder.glob("*/job.json"):
                    if job.parent.name not in self._tasks:
                        self._tasks[job.parent.name] = asyncio.create_task(self._supervise(job))
                await asyncio.sleep(0.02)

    async def _supervise(self, job: Path) -> None:
        uid = job.parent.name
        supervisor = FakeSupervisor(job.parent, str(json.loads(job.read_text())["job"]))

        async def planned() -> None:
            self.planned.add(uid)
            names = [one["name"] for one in supervisor.plans[-1]["containers"]]
            await supervisor.report("running", {name: kubelet_bed.container(image_name=IMAGE) for name in names})

        supervisor.on_plan = planned
        while True:
            with suppress(OSError):
                await supervisor.connect()
                self.connected.add(uid)
                await supervisor.closed.wait()
            self.connected.discard(uid)
            await supervisor.leave()
            # As the real one at first.
            await asyncio.sleep(0.2)


async def measure(kubelet: Process, api: KubeUser, count: int, rounds: int) -> dict[str, Any]:
    """Start pods, then kill the kubelet in rounds; return the figures."""
    pods = Pods(kubelet.home / ".isthmus/pods")
    for _ in range(count):
        await asyncio.to_thread(api.pod, container={"image": IMAGE})
    await pods.until(count)
    # The last statuses are written.
    await asyncio.sleep(20)
    peak_mib, adopted_s, next_peaks_mib = kubelet.memory_mib(), list[float](), list[float]()
    for _ in range(rounds):
        kubelet.kill()
        while pods.connected:
            await asyncio.sleep(0.02)
        began_s = time.monotonic()
        kubelet.start()
        await pods.until(count)
        adopted_s.append(round(time.monotonic() - began_s, 2))
        await asyncio.sleep(20)
        next_peaks_mib.append(round(kubelet.memory_mib()))
    return {"pods": count, "peak_mib": round(peak_mib), "adopted_s": adopted_s, "next_peak_mib": next_peaks_mib}


def main() -> int:
    """Measure and write JSON."""
    parser = argparse.ArgumentParser(description="Memory and restart of a kubelet with many pods.")
    parser.add_argument("--pods", type=int, nargs="+", default=[200, 500], help="at once (default: 200 and 500)")
    parser.add_argument("--rounds", type=int, default=5, help="deaths of the kubelet (default: %(default)s)")
    arguments = parser.parse_args()
    figures = []
    for count in arguments.pods:
        with tempfile.TemporaryDirectory() as folder, api_server(Path(folder, "kube")) as server:
            kubelet = Process(server, Path(folder, "home"))
            cache(kubelet.home)
            kubelet.start()
            try:
                figures.append(asyncio.run(measure(kubelet, KubeUser(server), count, arguments.rounds)))
            finally:
                kubelet.kill()
    path = save("kubelet_many", figures=figures)
    print(*figures, path, sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
