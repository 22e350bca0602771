"""Runs in a Slurm job of a user whose Kubernetes is up: submit jobs that run a pod's supervisor, and time them.

Between Slurm and the supervisors there is nothing but this file: no API server, no pod, no decision. Each supervisor
gets the same plan; the last line is the seconds until all have said that they ended well, as JSON.
"""

import asyncio
import json
import socket
import sys
import time
from pathlib import Path
from typing import Any
from uuid import uuid4

from isthmus.kubelet.channel import ChannelServer, Connection
from isthmus.kubelet.credentials import Authority, server_context
from isthmus.kubelet.pods.store import Store
from isthmus.kubelet.slurm import script
from isthmus.model.pod_job import Job

WAIT_S = 900
PYTHON = "/opt/isthmus/bin/python"
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# As the kubelet submits a pod of one container with 32 MiB.
OPTIONS = (
    *("--parsable", "--job-name=isthmus-supervised", "--export=NIL", "--no-requeue", "--pod-network=private"),
    *("--cpus-per-task=1", "--mem=88M"),
)


class Listener:
    """Gives each supervisor the plan, and counts those that have ended."""

    def __init__(self, plan: dict[str, Any]) -> None:
        self._plan = plan
        self.ended: dict[str, int] = {}
        self.changed = asyncio.Event()

    async def connected(self, connection: Connection) -> None:
        """Send the plan to one that has none."""
        if not connection.hello["has_plan"]:
            await connection.send({"type": "plan", "plan": {**self._plan, "uid": connection.uid}})

    def reported(self, connection: Connection, report: dict[str, Any]) -> None:
        """Count one that has ended."""
        if report["phase"] == "ended":
            self.ended[connection.uid] = report["containers"]["main"]["exit_code"]
            self.changed.set()

    def left(self, connection: Connection) -> None:
        """Nothing is to be done."""


def own_address() -> str:
    """Return the address of this pod."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        # Nothing is sent; the kernel says from where it would be.
        asking.connect(("10.96.0.1", 9))
        return str(asking.getsockname()[0])


async def submit(folder: Path) -> None:
    """Submit one supervisor."""
    job = Job(folder.name, str(folder), (), PYTHON, (("HOME", str(Path.home())), ("PATH", PATH)))
    words = ("sbatch", *OPTIONS, f"--output={folder}/slurm.log")
    process = await asyncio.create_subprocess_exec(
        *words, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.DEVNULL
    )
    await process.communicate(script.text(job).encode())
    if process.returncode:
        raise SystemExit(f"sbatch ended with status {process.returncode}")


async def main() -> None:
    """Take a folder for all, with plan.json, and the number of jobs from the command line."""
    base, count = Path(sys.argv[1]).absolute(), int(sys.argv[2])
    authority = Authority(Path.home() / ".isthmus/cluster/pki")
    listener = Listener(json.loads((base / "plan.json").read_text()))
    server, address = ChannelServer(listener), own_address()
    port = await server.start(address, 0, server_context(authority, address, base))
    store = Store(base / "jobs")
    folders = [store.folder(str(uuid4())) for _ in range(count)]
    begin = time.monotonic()
    for folder in folders:
        folder.accept({})
        folder.renew_credential(authority)
        folder.set_address(address, port)
        await submit(folder.path)
    async with asyncio.timeout(WAIT_S):
        while len(listener.ended) < count:
            listener.changed.clear()
            await listener.changed.wait()
    taken_s = time.monotonic() - begin
    server.stop()
    bad = sum(code != 0 for code in listener.ended.values())
    print(json.dumps({"seconds": taken_s, "jobs": count, "bad": bad}))


if __name__ == "__main__":
    asyncio.run(main())
