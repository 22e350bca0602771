"""Runs on the login node as a user whose Kubernetes is up: pods one after the other, and requests to the API meanwhile.

    hostile_victim.py IMAGE NODE SECONDS

pod_rounds.py lies beside it. A last line of JSON has the seconds of each.
"""

import asyncio
import json
import sys
import time
from pathlib import Path

from pod_rounds import PODS, Watched, connected, now_s, pod

KUBECONFIG = Path.home() / ".isthmus/kubeconfig"
# No faster, so that the requests are no load themselves.
PAUSE_S = 0.05
# A pod's start, more or less.
START_S = 2.0


async def start_pods(watched: Watched, image: str, node: str, until: float) -> list[float]:
    """Start pods on a node; return the seconds from each one's creation to Running."""
    took: list[float] = []
    while not took or time.monotonic() < until:
        name = f"victim-{time.monotonic_ns()}"
        wanted = pod(name, image, ["sleep", "60"])
        wanted["metadata"]["annotations"] = {"slurm-job.hpk.io/flags": f"--nodelist={node} --overcommit"}
        begin = now_s()
        await watched.kube.create(PODS, wanted)
        await watched.until([name], "Running")
        took.append(watched.seen[name]["Running"] - begin)
        await watched.kube.delete(f"{PODS}/{name}")
        await watched.until([name], "Deleted")
    return took


async def ask(watched: Watched, until: float) -> list[float]:
    """Ask the API server whether it is ready to serve; return the seconds of each answer."""
    took: list[float] = []
    while time.monotonic() < until:
        begin = time.perf_counter()
        await watched.kube.get("/api/v1/namespaces/default")
        took.append(time.perf_counter() - begin)
        await asyncio.sleep(PAUSE_S)
    return took


async def main() -> None:
    """Do both for some seconds."""
    image, node, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
    kube = await connected(KUBECONFIG)
    watched = Watched(kube)
    following = asyncio.create_task(watched.run())
    until = time.monotonic() + seconds
    # The last pod is to run before the end.
    pods, asked = await asyncio.gather(start_pods(watched, image, node, until - START_S), ask(watched, until))
    following.cancel()
    await kube.close()
    print(json.dumps({"pod": pods, "api": asked}))


if __name__ == "__main__":
    asyncio.run(main())
