"""Runs on the login node as a user whose Kubernetes is up: take pods' times by one watch and print them as JSON.

Times are those of the kernel that all nodes of a local test bed share, as /proc/uptime has them.
"""

import asyncio
import json
import os
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from isthmus.clients.kube.api import ConflictError, Kube, NotFoundError

SPACE = "isthmus-bench"
PODS = f"/api/v1/namespaces/{SPACE}/pods"
FINAL = ("Succeeded", "Failed")
WAIT_S = 900
# How long it is watched what the machine does anyway.
IDLE_S = 3.0
TICKS = os.sysconf("SC_CLK_TCK")


def now_s() -> float:
    """Return the time since the machine started."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def busy_s() -> float:
    """Return how long the machine's processors have worked (proc_stat(5)): all nodes of a local test bed share them."""
    user, nice, system, _, _, irq, softirq, *_ = map(int, Path("/proc/stat").read_text().split()[1:9])
    return (user + nice + system + irq + softirq) / TICKS


def pod(name: str, image: str, command: list[str]) -> dict[str, Any]:
    """Return a small pod."""
    container = {
        "name": "main",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": command,
        "resources": {"requests": {"memory": "32Mi"}, "limits": {"memory": "32Mi"}},
    }
    spec = {"restartPolicy": "Never", "terminationGracePeriodSeconds": 0, "containers": [container]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


async def connected(config: Path) -> Kube:
    """Return the API server of a kubeconfig, where pods can be made in the namespace; one of before ends first."""
    kube = await Kube.connect(config)
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SPACE}}
    async with asyncio.timeout(WAIT_S):
        while True:
            with suppress(ConflictError):
                await kube.create("/api/v1/namespaces", space)
            with suppress(NotFoundError):
                made = await kube.get(f"/api/v1/namespaces/{SPACE}")
                await kube.get(f"/api/v1/namespaces/{SPACE}/serviceaccounts/default")
                if made["status"]["phase"] == "Active":
                    return kube
            await asyncio.sleep(0.2)


class Watched:
    """When each pod was first seen in each phase, and its last object."""

    def __init__(self, kube: Kube) -> None:
        self.kube = kube
        self.seen: dict[str, dict[str, float]] = {}
        self.objects: dict[str, dict[str, Any]] = {}
        self.changed = asyncio.Event()

    async def run(self) -> None:
        """Follow the namespace from now on."""
        version = (await self.kube.get(PODS))["metadata"]["resourceVersion"]
        while True:
            async for event in self.kube.watch(PODS, version):
                version = event.object["metadata"]["resourceVersion"]
                if event.kind in ("ADDED", "MODIFIED", "DELETED"):
                    name = event.object["metadata"]["name"]
                    phase = "Deleted" if event.kind == "DELETED" else event.object["status"]["phase"]
                    self.seen.setdefault(name, {}).setdefault(phase, now_s())
                    self.objects[name] = event.object
                    self.changed.set()

    async def until(self, names: list[str], *phases: str) -> None:
        """Wait until all of them were seen in one of these phases."""
        async with asyncio.timeout(WAIT_S):
            while not all(set(phases) & set(self.seen.get(name, {})) for name in names):
                self.changed.clear()
                await self.changed.wait()


async def singles(watched: Watched, image: str, count: int, prefix: str) -> dict[str, list[float]]:
    """Start pods one after the other; return seconds to Running, and from a container's exit to its phase."""
    running, exits = [], []
    for number in range(count):
        name = f"{prefix}-{number}"
        script = "sleep 1; cut -d ' ' -f 1 /proc/uptime > /dev/termination-log"
        begin = now_s()
        await watched.kube.create(PODS, pod(name, image, ["sh", "-c", script]))
        await watched.until([name], "Running")
        running.append(watched.seen[name]["Running"] - begin)
        await watched.until([name], *FINAL)
        (status,) = watched.objects[name]["status"]["containerStatuses"]
        exits.append(watched.seen[name]["Succeeded"] - float(status["state"]["terminated"]["message"]))
        await watched.kube.delete(f"{PODS}/{name}")
        await watched.until([name], "Deleted")
    return {"running_s": running, "exit_s": exits}


async def burst(watched: Watched, image: str, count: int) -> dict[str, float]:
    """Make many short pods at once; return how long until all have ended, and how many did so once and well."""
    names = [f"burst-{number}" for number in range(count)]
    before_s = busy_s()
    await asyncio.sleep(IDLE_S)
    begin, begin_s = now_s(), busy_s()
    for start in range(0, count, 20):
        some = names[start : start + 20]
        await asyncio.gather(*(watched.kube.create(PODS, pod(name, image, ["true"])) for name in some))
    await watched.until(names, *FINAL)
    taken_s = now_s() - begin
    cpu_s = busy_s() - begin_s - (begin_s - before_s) / IDLE_S * taken_s
    good = sum(watched.objects[name]["status"]["phase"] == "Succeeded" for name in names)
    restarts = sum(watched.objects[name]["status"]["containerStatuses"][0]["restartCount"] for name in names)
    return {"seconds": taken_s, "cpu_s": cpu_s, "pods": count, "succeeded": good, "restarts": restarts}


async def main() -> None:
    """Take image, number of single pods, size of the burst and perhaps a kubeconfig from the command line."""
    image, count, many = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    kube = await connected(Path(*sys.argv[4:5] or (Path.home(), ".isthmus/kubeconfig")))
    watched = Watched(kube)
    task = asyncio.create_task(watched.run())
    # The image comes into the cache, and the first pod's times count not.
    await singles(watched, image, 1, "first")
    figures = {"singles": await singles(watched, image, count, "single"), "burst": await burst(watched, image, many)}
    task.cancel()
    await kube.delete(f"/api/v1/namespaces/{SPACE}")
    await kube.close()
    print(json.dumps(figures))


if __name__ == "__main__":
    asyncio.run(main())
