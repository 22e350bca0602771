"""Runs on the login node, beside pod_rounds.py: take times of streams, and what an idle kubelet needs, as JSON.

The user's Kubernetes is up. Reads {"image": ..., "execs": n, "lines": n, "transfers": n, "transfer_mib": n, "pods": n,
"window_s": s} from standard input. Transfers go by turns: from the pod's address, as the login node reaches it, and
through a forwarded port.
"""

import asyncio
import json
import re
import socket
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

# They lie in one folder there.
from pod_rounds import PODS, SPACE, Watched, connected, now_s, pod
from prometheus_client.parser import text_string_to_metric_families

from isthmus.clients.kube import kubeconfig
from isthmus.clients.kube.kubeconfig import Kubeconfig

KUBECONFIG = Path.home() / ".isthmus/kubeconfig"
METRICS = "/api/v1/nodes/slurm/proxy/metrics"
PORT = 8080
NAME = "streams"
# A clock in the log, and a file of nothing to read over the network, in memory and taking none.
SCRIPT = """
dd if=/dev/null of=/dev/shm/big bs=1M seek={mib} 2>/dev/null; httpd -p {port} -h /dev/shm
while sleep 0.1; do cut -d ' ' -f 1 /proc/uptime; done
"""
# From the last change on the kubelet asks Slurm less often.
STABLE_S = 30
STDOUT = 1


class Server:
    """The user's API server, for streams, of which the kubelet's client has none."""

    def __init__(self, access: Kubeconfig) -> None:
        self.url, self.tls = access.server, access.tls()

    async def get(self, session: aiohttp.ClientSession, path: str) -> str:
        """Return what is at a path."""
        async with session.get(self.url + path, ssl=self.tls) as answer:
            answer.raise_for_status()
            return await answer.text()


async def exec_s(server: Server) -> float:
    """Open a WebSocket of its own for exec, TLS included; return the seconds until its first byte of output."""
    path = f"{server.url}{PODS}/{NAME}/exec?command=echo&command=here&stdout=true&container=main"
    begin = time.perf_counter()
    async with (
        aiohttp.ClientSession() as session,
        session.ws_connect(path, ssl=server.tls, protocols=["v5.channel.k8s.io"]) as opened,
    ):
        async for message in opened:
            if message.data[0] == STDOUT and message.data[1:]:
                return time.perf_counter() - begin
    raise ValueError("exec ended without a word")


async def log_s(server: Server, count: int) -> list[float]:
    """Follow the log; return the seconds from the writing of each line to its coming."""
    query = "follow=true&tailLines=0"
    found: list[float] = []
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"{server.url}{PODS}/{NAME}/log?{query}", ssl=server.tls) as answer,
    ):
        async for line in answer.content:
            found.append(now_s() - float(line))
            if len(found) == count:
                break
    return found


def fetch_gbit_s(host: str, port: int, mib: int) -> float:
    """Read the file; return the rate."""
    taken, buffer = 0, bytearray(1 << 20)
    begin = time.perf_counter()
    with socket.create_connection((host, port), timeout=60) as opened:
        opened.sendall(b"GET /big HTTP/1.0\r\n\r\n")
        while count := opened.recv_into(buffer):
            taken += count
    seconds = time.perf_counter() - begin
    if taken < mib << 20:
        raise ValueError(f"{taken} bytes came, not {mib} MiB")
    return taken * 8 / seconds / 1e9


@asynccontextmanager
async def forwarded() -> AsyncIterator[int]:
    """Have kubectl forward a port; yield the local one."""
    words = ("--kubeconfig", str(KUBECONFIG), "--namespace", SPACE, "port-forward", f"pod/{NAME}", f":{PORT}")
    process = await asyncio.create_subprocess_exec("kubectl", *words, stdout=asyncio.subprocess.PIPE)
    try:
        assert process.stdout
        line = await asyncio.wait_for(process.stdout.readline(), 30)
        port = re.search(rb":(\d+) ->", line)
        assert port, line
        yield int(port[1])
    finally:
        process.terminate()
        await process.wait()


async def transfers(address: str, count: int, mib: int) -> list[dict[str, float]]:
    """Read the file both ways, by turns; the first turn fills caches and counts not."""
    done = []
    async with forwarded() as port:
        for _ in range(count + 1):
            ways = {"direct": (address, PORT), "forwarded": ("127.0.0.1", port)}
            done.append({name: await asyncio.to_thread(fetch_gbit_s, *way, mib) for name, way in ways.items()})
    return done[1:]


async def metrics(server: Server) -> dict[str, float]:
    """Return the kubelet's own figures."""
    async with aiohttp.ClientSession() as session:
        reported = await server.get(session, METRICS)
    return {
        sample.name: sample.value for family in text_string_to_metric_families(reported) for sample in family.samples
    }


async def idle(server: Server, window_s: float) -> dict[str, float]:
    """Return what the kubelet takes while nothing happens."""
    await asyncio.sleep(STABLE_S)
    begin_s, before = now_s(), await metrics(server)
    await asyncio.sleep(window_s)
    seconds, after = now_s() - begin_s, await metrics(server)

    def rate(name: str) -> float:
        return float((after.get(name, 0) - before.get(name, 0)) / seconds)

    return {
        "cpu_percent": 100 * rate("process_cpu_seconds_total"),
        "slurm_questions_per_s": rate("isthmus_kubelet_slurm_questions_total"),
        "max_rss_mib": after["process_max_resident_memory_bytes"] / (1 << 20),
    }


async def made(watched: Watched, image: str, count: int, mib: int) -> str:
    """Make pods that stay, one of them for the streams; return its address."""
    script = SCRIPT.format(mib=mib, port=PORT)
    await watched.kube.create(PODS, pod(NAME, image, ["sh", "-c", script]))
    names = [f"idle-{number}" for number in range(count - 1)]
    for name in names:
        await watched.kube.create(PODS, pod(name, image, ["sleep", "3600"]))
    await watched.until([NAME, *names], "Running")
    return str(watched.objects[NAME]["status"]["podIP"])


async def measure(asked: dict[str, Any]) -> dict[str, Any]:
    """Take all figures."""
    server, kube = Server(kubeconfig.read(KUBECONFIG)), await connected(KUBECONFIG)
    watched = Watched(kube)
    task = asyncio.create_task(watched.run())
    found: dict[str, Any] = {"idle": {"0": await idle(server, asked["window_s"])}}
    address = await made(watched, asked["image"], asked["pods"], asked["transfer_mib"])
    found["idle"][str(asked["pods"])] = await idle(server, asked["window_s"])
    await exec_s(server)
    found["exec_s"] = [await exec_s(server) for _ in range(asked["execs"])]
    found["log_s"] = await log_s(server, asked["lines"])
    found["transfers"] = await transfers(address, asked["transfers"], asked["transfer_mib"])
    found["max_rss_mib"] = (await metrics(server))["process_max_resident_memory_bytes"] / (1 << 20)
    task.cancel()
    await kube.delete(f"/api/v1/namespaces/{SPACE}")
    await kube.close()
    return found


if __name__ == "__main__":
    print(json.dumps(asyncio.run(measure(json.load(sys.stdin)))))
