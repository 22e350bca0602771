"""How much memory has each of many processes that follow the Services of users' clusters in login pods?

As the node has them, forks of one program, and beside those as processes that each execute Python: of this tree, or of
an earlier one whose sources are given. All watch one server with TLS on this host, for one account, in its own network
and not in pods'; the daemon that takes tables is none. Needs root, to become that account.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.repo.tree import ROOT
from tests.support.servers.watched import objects, watched
from tests.support.wait import wait

ACCOUNT = 1
SERVICES = 20
# After the last table: what is freed late is freed then.
QUIET_S = 3.0
PUT = """
import os, sys
from pathlib import Path
from isthmus.cli import login_services
folder, count = Path(sys.argv[1]), int(sys.argv[2])

def put(table):
    descriptor = os.open(folder / "said", os.O_WRONLY | os.O_APPEND)
    os.write(descriptor, b"%d %d\\n" % (os.getpid(), len(table)))
    os.close(descriptor)
"""
EXECUTED = f"""{PUT}
import asyncio, inspect
going = login_services.run(folder / "home" / "kubeconfig", put)
if inspect.iscoroutine(going):
    asyncio.run(going)
"""
FORKED = f"""
import gc
gc.disable()
{PUT}
from isthmus.cli import login_followers
login_followers.prepare()
login_followers.load()
network = os.open("/proc/self/ns/net", os.O_RDONLY)

def run(_, surroundings):
    login_services.run(folder / "home" / "kubeconfig", put, surroundings=surroundings)

for _ in range(count):
    login_followers.fork({ACCOUNT}, network, None, run)
sys.stdin.read()
"""


def memory_kib(process: int) -> dict[str, int]:
    """Return what a process has for itself, of pages and of the kernel's tables of them, and its share of all."""
    rollup = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    pairs = [line.split()[:2] for line in rollup if line.endswith("kB")]
    kib = {name.rstrip(":"): int(value) for name, value in pairs}
    status = Path(f"/proc/{process}/status").read_text().splitlines()
    (tables,) = (int(line.split()[1]) for line in status if line.startswith("VmPTE"))
    return {"private": kib["Private_Clean"] + kib["Private_Dirty"], "pss": kib["Pss"], "page_tables": tables}


@contextmanager
def running(folder: Path, count: int, program: str, sources: Path, *, is_one: bool) -> Iterator[list[int]]:
    """Run a program, once or for each; give the ids of those that have brought a table, once nothing happens."""
    said = folder / "said"
    said.write_text("")
    said.chmod(0o666)
    command = [sys.executable, "-c", program, str(folder), str(count)]
    environment = {**os.environ, "PYTHONPATH": str(sources)}
    user: dict[str, Any] = {} if is_one else {"user": ACCOUNT, "group": ACCOUNT, "extra_groups": []}
    begun = [
        subprocess.Popen(command, stdin=subprocess.PIPE, env=environment, cwd="/", **user)
        for _ in range(1 if is_one else count)
    ]
    try:
        wait(lambda: len(said.read_text().splitlines()), lambda lines: lines == count, timeout_s=60 + 3 * count)
        subprocess.run(["sleep", str(QUIET_S)], check=True)
        lines = [line.split() for line in said.read_text().splitlines()]
        assert {int(table) for _, table in lines} == {SERVICES}
        yield [int(process) for process, _ in lines]
    finally:
        for each in begun:
            each.kill()
            each.wait()


def figures(processes: Sequence[int]) -> dict[str, float]:
    """Return the medians, KiB."""
    each = [memory_kib(process) for process in processes]
    return {name: statistics.median(one[name] for one in each) for name in each[0]}


def measure(count: int, before: Path | None) -> dict[str, Any]:
    """Measure so many of each kind; the earlier tree's, if one is given."""
    found: dict[str, Any] = {"processes": count, "services": SERVICES}
    kinds = [("forked", FORKED, ROOT / "src", True), ("executed", EXECUTED, ROOT / "src", False)]
    if before:
        kinds.append(("before", EXECUTED, before, False))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        with watched(folder / "pki", objects(SERVICES)) as server:
            server.kubeconfig(folder / "home" / "kubeconfig", ACCOUNT)
            for kind, program, sources, is_one in kinds:
                with running(folder, count, program, sources, is_one=is_one) as processes:
                    found[f"{kind}_kib"] = figures(processes)
                    print(kind, json.dumps(found[f"{kind}_kib"]), flush=True)
            assert not server.wrong or before, server.wrong
    return found
