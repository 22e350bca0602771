"""What one user who floods a node's daemons costs another user there: job starts with a pod network, and `job_get`.

In each round every flood runs for some seconds, as the second user, between a quiet phase and a plain burner of as much
CPU time as the flood itself has taken; the third user starts jobs and asks the daemon meanwhile. What stands side by
side is compared. The burner tells how much of a ratio is nothing but a busy processor.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.bench import testbed
from tests.bench.results import quantile, save
from tests.bench.testbed import TestBed

PROGRAM = Path(__file__).resolve().parents[1] / "support/daemon_attacks.py"
PLACE = "/usr/local/lib/isthmus-bench-hostile.py"
ALONE = f"python3 {PLACE} flood"
IN_NAMESPACE = f"unshare --user --map-root-user --map-auto {ALONE}"
GOAL = 1.5
QUIET, BURNER = "quiet before: ", "burner for: "


@dataclass(frozen=True)
class Flood:
    """One kind of flood: `daemon_attacks.py flood KIND`, by subordinate uids or as oneself, in how many processes.

    Attributes:
        kind: of the program.
        job: whose job it names: the attacker's own or the victim's.
    """

    kind: str
    uids: int = 0
    processes: int = 16
    job: str = "victim"

    def command(self, seconds: float, jobs: Mapping[str, int]) -> str:
        """Return what the attacker runs."""
        program = IN_NAMESPACE if self.uids else ALONE
        return f"{program} {self.kind} {seconds:g} {self.uids} {self.processes} {jobs[self.job]}"


FLOODS = {
    "Services of another's job, 16 connections": Flood("services"),
    "Services of one's own job, 16 connections": Flood("services", job="attacker"),
    "status, 16 connections": Flood("status"),
    "short lines, 16 connections": Flood("short"),
    "Services, 12 subordinate uids x 16": Flood("services", uids=12),
    "960 connections held": Flood("held", uids=60),
    "connects, 16 processes": Flood("connect"),
    "reserve and unreserve, 2 processes": Flood("churn", processes=2),
    "DNS questions": Flood("dns", processes=2),
    "new connections, 2,000 of UDP": Flood("conntrack", processes=1),
}


@dataclass
class Samples:
    """What the victim saw in one kind of phase, seconds; and the flood's CPU, of one processor."""

    starts: list[float] = field(default_factory=list)
    asked: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)

    def figures(self) -> dict[str, object]:
        """Return medians and tails."""
        starts = {"srun_median_s": statistics.median(self.starts), "srun_p99_s": quantile(self.starts, 0.99)}
        asked = {"job_get_median_s": statistics.median(self.asked), "job_get_p99_s": quantile(self.asked, 0.99)}
        figures = {name: round(value, 5) for name, value in {**starts, **asked}.items()}
        return {
            **figures,
            "starts": len(self.starts),
            "asked": len(self.asked),
            "cpu": round(max(self.cpu, default=0), 2),
        }


@dataclass(frozen=True)
class Bench:
    """The bed, its three parts, and how long a phase is."""

    node: TestBed
    login: TestBed
    attacker: str
    victim: str
    seconds: float

    def phase(self, samples: Samples, command: str = "") -> float:
        """Let the victim work while the attacker runs a command; return the CPU time that it took, of one processor."""
        flood = None
        if command:
            words = [*self.node.ssh, f"su - {self.attacker} -c '{command}'"]
            flood = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        asking = f"su - {self.victim} -c 'python3 {PLACE} get {self.seconds - 1:g}'"
        asked = subprocess.Popen([*self.node.ssh, f"sleep 0.5; {asking}"], stdout=subprocess.PIPE, text=True)
        samples.starts += json.loads(self.login.run(f"sleep 0.5; python3 isthmus-bench/starts.py {self.seconds - 1:g}"))
        samples.asked += json.loads(asked.communicate()[0])
        cpu = float(json.loads(flood.communicate()[0])["cpu_s"]) / self.seconds if flood else 0.0
        samples.cpu.append(cpu)
        return cpu


STARTS = """
import json, subprocess, sys, time
srun = "srun --quiet --pod-network --overcommit --mem=10 --nodelist=NODE true".split()
until, told = time.monotonic() + float(sys.argv[1]), []
while time.monotonic() < until:
    begin = time.perf_counter()
    subprocess.run(srun, check=True)
    told.append(time.perf_counter() - begin)
print(json.dumps(told))
"""


@contextmanager
def jobs(bench: Bench, bed: TestBed) -> Iterator[Mapping[str, int]]:
    """Keep a job of each of both users on the node."""
    root = TestBed(bed.name, bed.host, "root")
    submit = f"sbatch --parsable --pod-network --mem=10 --nodelist={bench.node.host} --output=/dev/null --wrap"
    begun = {
        part: int(root.run(f"su - {user} -c \"{submit} 'sleep 3600'\""))
        for part, user in (("attacker", bench.attacker), ("victim", bench.victim))
    }
    try:
        root.run(f"until [ $(squeue -h -t R -j {','.join(map(str, begun.values()))} | wc -l) = 2 ]; do sleep 1; done")
        yield begun
    finally:
        root.run(f"scancel {' '.join(map(str, begun.values()))}")


def measure(bench: Bench, rounds: int, known: Mapping[str, int]) -> dict[str, Samples]:
    """Run all phases of all rounds."""
    seen: dict[str, Samples] = defaultdict(Samples)
    bench.phase(Samples())
    for _ in range(rounds):
        for name, flood in FLOODS.items():
            bench.phase(seen[QUIET + name])
            cpu = bench.phase(seen[name], flood.command(bench.seconds, known))
            burner = f"{ALONE} burn {bench.seconds:g} 0 {max(1, round(cpu))} {cpu * 1000:.0f}"
            bench.phase(seen[BURNER + name], burner)
    return seen


def compare(seen: Mapping[str, Samples]) -> dict[str, dict[str, object]]:
    """Return each phase's figures; those of floods with ratios of medians to the quiet phase and to its burner."""
    figures = {name: samples.figures() for name, samples in seen.items()}
    for name in FLOODS:
        mine = seen[name]
        for word, base in (("quiet", seen[QUIET + name]), ("burner", seen[BURNER + name])):
            starts = statistics.median(mine.starts) / statistics.median(base.starts)
            asked = statistics.median(mine.asked) / statistics.median(base.asked)
            figures[name] |= {f"srun_to_{word}": round(starts, 2), f"job_get_to_{word}": round(asked, 2)}
    return figures


def main() -> int:
    """Measure in rounds and write JSON."""
    parser = argparse.ArgumentParser(description="What one user's floods of a node's daemons cost another user.")
    parser.add_argument("--rounds", type=int, default=2, help="of all floods (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=8, help="a phase (default: %(default)s)")
    parser.add_argument("--node", default="c2", help="the node that is flooded (default: %(default)s)")
    parser.add_argument("--attacker", default="bob", help="(default: %(default)s)")
    parser.add_argument("--quick", action="store_true", help="one round of short phases, to see that it works")
    testbed.add_arguments(parser)
    parser.set_defaults(user="carol")
    arguments = parser.parse_args()
    rounds, seconds = (1, 4.0) if arguments.quick else (arguments.rounds, arguments.seconds)
    node, login = (
        TestBed(arguments.name, arguments.node, "root"),
        TestBed(arguments.name, arguments.host, arguments.user),
    )
    bench = Bench(node, login, arguments.attacker, arguments.user, seconds)
    node.run(f"cat > {PLACE}", stdin=PROGRAM.read_text())
    login.run("mkdir -p isthmus-bench && cat > isthmus-bench/starts.py", stdin=STARTS.replace("NODE", arguments.node))
    try:
        with jobs(bench, login) as known:
            figures = compare(measure(bench, rounds, known))
    finally:
        node.run(f"rm -f {PLACE}; su - {arguments.attacker} -c 'isthmus network list --json' > /dev/null")
    for name, one in figures.items():
        print(name, one)
    print(save("hostile", quick=arguments.quick, rounds=rounds, seconds=seconds, goal=GOAL, figures=figures))
    return 0


if __name__ == "__main__":
    sys.exit(main())
