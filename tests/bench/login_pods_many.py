"""What does one more login pod cost on a node that has many: time, memory, rules; and what is left after the last?

One simulated node (`simulated`): the whole daemon and its CoreDNS, a real etcd and the real kernel. A few lines of
shell stand for systemd: they start the first processes of pods, and CoreDNS, so what systemd takes for a unit comes on
top. A session is a process, one and the same for all pods; sshd, PAM and what users run take no part.

Memory is what the whole machine has less of, as the kernel's part is nobody's. So nothing else should run meanwhile.
"""

from __future__ import annotations

import os
import signal
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from isthmus.clients.etcd.store import Etcd
from isthmus.network.api.messages import LoginEnter, LoginPrepare
from isthmus.network.logins.numbers import Logins
from isthmus.network.state.store import Store
from tests.bench.network_state import KEYS, RANGES
from tests.bench.simulated import Host, Machine, Simulation, ask_all, simulation, worked_s
from tests.repo.tree import ROOT
from tests.support.servers.etcd import program
from tests.support.wait import wait

UID, TMP_MIB = 100_000, 64
FIRST_PORT, PORTS_EACH = 10_000, 48
# Pods whose median counts, at the beginning, after the very first, and at the end.
COUNTED = 20
GOAL_RATIO, GOAL_MIB = 1.5, 3.0
QUIET_S, IDLE_S = 3.0, 10.0
PARTS = ("AnonPages", "SUnreclaim", "SReclaimable", "Percpu", "KernelStack", "PageTables")
SYSTEMCTL = """#!/bin/sh
[ "$1" = --no-block ] && shift
unit=${2%.service}
uid=${unit#*@}
case "$1:$unit" in
start:isthmus-login@*) exec PROGRAM /run/isthmus/login/$uid $uid MIB < /dev/null > /dev/null 2>&1 ;;
stop:isthmus-login@*)
  first=$(cat /run/isthmus/login/$uid/init) && kill $first
  for each in $(seq 250); do
    case "$(cut -d' ' -f3 /proc/$first/stat 2> /dev/null)" in ''|Z) break ;; esac
    sleep 0.02
  done ;;
reload-or-restart:isthmus-dns)
  [ -e /run/dns.pid ] && kill -USR1 $(cat /run/dns.pid) && exit
  COREDNS -conf /run/isthmus/dns/Corefile < /dev/null > /run/dns.log 2>&1 &
  echo $! > /run/dns.pid ;;
esac
exit 0
"""


@dataclass(frozen=True)
class Look:
    """How things are with some pods.

    Attributes:
        pods: how many.
        used_kib: memory of the whole machine that cannot be given to others.
        parts_kib: some of it, and what the kernel could give back of its slabs, by names of /proc/meminfo.
        programs_kib: of programs, each page shared with others counted in parts: daemon, etcd, dns, first processes.
        elements: of the packet filter's sets.
        idle_cores: what the daemon works when nothing happens.
    """

    pods: int
    used_kib: int
    parts_kib: dict[str, int]
    programs_kib: dict[str, int]
    elements: int
    idle_cores: float


def meminfo() -> dict[str, int]:
    """Return /proc/meminfo in KiB."""
    lines = (line.split() for line in Path("/proc/meminfo").read_text().splitlines())
    return {name.rstrip(":"): int(value) for name, value, *_ in lines}


def pss_kib(process: int) -> int:
    """Return the memory of a process, 0 for none."""
    with suppress(OSError):
        for line in Path(f"/proc/{process}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1])
    return 0


@dataclass(frozen=True)
class Node:
    """The simulated node, seen from outside."""

    simulated: Simulation
    machine: Machine

    @property
    def run(self) -> Path:
        """Its /run."""
        return Path(f"/proc/{self.machine.process}/root/run")

    @property
    def first_processes(self) -> list[int]:
        """Those of pods that are there."""
        return [int(file.read_text()) for file in self.run.glob("isthmus/login/*/init")]

    @property
    def elements(self) -> int:
        """How many elements the packet filter's sets have."""
        inside = ["nsenter", f"--net=/proc/{self.machine.process}/ns/net", "--"]
        listed = subprocess.run([*inside, "nft", "list", "table", "inet", "isthmus"], check=True, capture_output=True)
        return sum(text.split(b"}")[0].count(b",") + 1 for text in listed.stdout.split(b"elements = {")[1:])

    def look(self, pods: int) -> Look:
        """Measure once nothing happens any more."""
        time.sleep(QUIET_S)
        worked = worked_s(self.machine.process)
        time.sleep(IDLE_S)
        idle = (worked_s(self.machine.process) - worked) / IDLE_S
        seen = meminfo()
        used = seen["MemTotal"] - sum(seen[name] for name in ("MemFree", "Buffers", "Cached", "SReclaimable"))
        dns = self.run / "dns.pid"
        programs = {
            "daemon": pss_kib(self.machine.process),
            "etcd": sum(pss_kib(each.process.pid) for each in self.simulated.etcd.members if each.process),
            "dns": pss_kib(int(dns.read_text())) if dns.exists() else 0,
            "first processes": sum(map(pss_kib, self.first_processes)),
        }
        return Look(pods, used, {name: seen[name] for name in PARTS}, programs, self.elements, round(idle, 3))

    def enter(self, uid: int, session: int) -> float:
        """Begin a session as PAM does, in two phases; return the seconds."""
        return sum(ask_all([self.machine], kind(uid, session))[-1] for kind in (LoginPrepare, LoginEnter))

    def end(self) -> None:
        """End what would outlive the node."""
        processes = self.first_processes
        with suppress(OSError):
            processes.append(int((self.run / "dns.pid").read_text()))
        for each in processes:
            with suppress(ProcessLookupError):
                os.kill(each, signal.SIGKILL)


@contextmanager
def one_node(pods: int) -> Iterator[Node]:
    """Give a node where so many users may log in."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        login = folder / "isthmus_login"
        subprocess.run(["make", "-s", "-C", ROOT / "src/spank", f"OUT={folder}", login], check=True)
        systemctl, passwd = folder / "systemctl", folder / "passwd"
        words = {"PROGRAM": str(login), "COREDNS": program("coredns"), "MIB": str(TMP_MIB)}
        text = SYSTEMCTL
        for word, value in words.items():
            text = text.replace(word, value)
        systemctl.write_text(text)
        systemctl.chmod(0o755)
        users = "".join(f"u{uid}:x:{uid}:{uid}::/:/bin/false\n" for uid in range(UID + 1, UID + 1 + pods))
        passwd.write_text(Path("/etc/passwd").read_text() + users)
        last = FIRST_PORT + PORTS_EACH * 1024 - 1
        logins = Logins(FIRST_PORT, last, PORTS_EACH, (22,), 0, linger_s=1, tmp_mib=TMP_MIB, is_here=True)
        with simulation(folder, Host(systemctl, passwd, logins)) as simulated:
            node = Node(simulated, simulated.grow(1)[0])
            try:
                yield node
            finally:
                node.end()


def measure(pods: int) -> dict[str, Any]:
    """Let users log in, one after the other, and out, all at once; return what is kept of it."""
    marks = {min(COUNTED, pods), pods // 10, pods // 2, pods}
    with one_node(pods) as node, subprocess.Popen(["sleep", "infinity"]) as session:
        try:
            looks, seconds, work = [node.look(0)], [], []
            for number in range(1, pods + 1):
                before = worked_s(node.machine.process)
                seconds.append(node.enter(UID + number, session.pid))
                work.append(worked_s(node.machine.process) - before)
                if number in marks:
                    looks.append(node.look(number))
                    print(f"{number} pods: {statistics.median(seconds[-COUNTED:]):.3f} s, {looks[-1]}", flush=True)
            assert node.machine.pods == pods
        finally:
            session.kill()
        began_s = time.monotonic()
        wait(lambda: node.machine.pods, lambda left: left == 0, timeout_s=600, interval_s=0.5)
        ended_s = time.monotonic() - began_s
        ended = {"end_of_all_s": round(ended_s, 1), "left": left(node)}
        return {**figures(seconds, work, looks), **ended}


def left(node: Node) -> dict[str, int]:
    """Return what there still is of pods that have ended."""
    store = Store(Etcd(node.simulated.etcd.access()), KEYS, RANGES)
    wait(lambda: store.load().state.jobs, lambda jobs: not jobs, timeout_s=120, interval_s=0.5)
    return {
        "namespaces": len(list((node.run / "netns").iterdir())),
        "folders": len(list((node.run / "isthmus/login").iterdir())),
        "legs": sum(len(user.legs) for user in store.load().state.users.values()),
    }


def ends(values: Sequence[float]) -> tuple[float, float]:
    """Return the middle one of the first pods, without the very first, and of the last."""
    return statistics.median(values[1 : 1 + COUNTED]), statistics.median(values[-COUNTED:])


def figures(seconds: Sequence[float], work: Sequence[float], looks: Sequence[Look]) -> dict[str, Any]:
    """Return what a pod costs: of the first and the last in time, and on average in memory and rules.

    Other work on the machine makes both times longer; the work of the daemon, seconds of one core, says more then.
    """
    (first, last), (first_work, last_work) = ends(seconds), ends(work)
    begin, end = looks[1], looks[-1]
    count = end.pods - begin.pods

    def each_kib(after: int, before: int) -> float:
        return round((after - before) / count, 1)

    return {
        "pods": end.pods,
        "first_s": round(first, 4),
        "last_s": round(last, 4),
        "ratio": round(last / first, 2),
        "goal_ratio": GOAL_RATIO,
        "first_work_s": round(first_work, 4),
        "last_work_s": round(last_work, 4),
        "work_ratio": round(last_work / first_work, 2),
        "pod_kib": each_kib(end.used_kib, begin.used_kib),
        "goal_kib": GOAL_MIB * 1024,
        "parts_kib": {name: each_kib(end.parts_kib[name], begin.parts_kib[name]) for name in PARTS},
        "programs_kib": {name: each_kib(end.programs_kib[name], begin.programs_kib[name]) for name in end.programs_kib},
        "elements": round((end.elements - begin.elements) / count, 1),
        "looks": [asdict(look) for look in looks],
        "seconds": [round(each, 4) for each in seconds],
    }
