"""What one user who floods a node's daemons costs another user there.

In each round every flood runs for some seconds, as the second user, between a quiet phase and a plain burner that
wants as much CPU time as the flood itself; the third user works meanwhile: starts jobs with a pod network on the node
and asks its daemon (`job_get`); then, in a phase of its own, starts pods there, asks a pod's DNS and the API server.
What stands side by side is compared. The burner shows how much of a ratio is nothing but a busy processor.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.bench import testbed
from tests.bench.results import quantile, save
from tests.bench.testbed import TestBed

PROGRAM = Path(__file__).resolve().parents[1] / "support/attacks/daemon.py"
PLACE = "/usr/local/lib/isthmus-bench-hostile.py"
ALONE = f"python3 {PLACE} flood"
IN_NAMESPACE = f"unshare --user --map-root-user --map-auto {ALONE}"
FOLDER = "isthmus-bench"
GOAL = 1.5
QUIET, BURNER = "quiet before: ", "burner for: "


@dataclass(frozen=True)
class Flood:
    """One kind of flood: `daemon_attacks.py flood KIND`, by subordinate uids or as oneself, in how many processes.

    Attributes:
        kind: of the program.
        job: whose job it names: the attacker's own or the victim's.
        spins: none of its processes ever waits; what it takes is only what others leave it.
    """

    kind: str
    uids: int = 0
    processes: int = 16
    job: str = "victim"
    spins: bool = False

    def command(self, seconds: float, jobs: Mapping[str, int]) -> str:
        """Return what the attacker runs."""
        program = IN_NAMESPACE if self.uids else ALONE
        return f"{program} {self.kind} {seconds:g} {self.uids} {self.processes} {jobs[self.job]}"

    def burner(self, seconds: float, cpu: float) -> str:
        """Return a plain burner that wants as much CPU time as the flood, which took `cpu` of one processor."""
        processes = self.processes if self.spins else max(1, round(cpu))
        share = processes if self.spins else cpu
        return f"{ALONE} burn {seconds:g} 0 {processes} {share * 1000:.0f}"


FLOODS = {
    "Services of another's job, 16 connections": Flood("services"),
    "Services of one's own job, 16 connections": Flood("services", job="attacker"),
    "status, 16 connections": Flood("status"),
    "short lines, 16 connections": Flood("short"),
    "Services, 12 subordinate uids x 16": Flood("services", uids=12),
    "960 connections held": Flood("held", uids=60),
    "connects, 16 processes": Flood("connect"),
    "connects to one's own socket, 16 processes": Flood("own"),
    "reserve and unreserve, 2 processes": Flood("churn", processes=2),
    "DNS questions": Flood("dns", processes=2, spins=True),
    "new connections, 2,000 of UDP": Flood("conntrack", processes=1),
}


@dataclass
class Samples:
    """What the victim saw in one kind of phase, seconds; and the flood's CPU, of one processor."""

    seen: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    cpu: float = 0.0

    def median(self, kind: str) -> float:
        """Return the median of one kind."""
        return statistics.median(self.seen[kind])

    def figures(self) -> dict[str, object]:
        """Return count, median and tail of each kind."""
        shown: dict[str, object] = {
            kind: {"count": len(took), "median_s": round(self.median(kind), 5), "p99_s": round(quantile(took, 0.99), 5)}
            for kind, took in self.seen.items()
        }
        return {**shown, "cpu": round(self.cpu, 2)}


@dataclass(frozen=True)
class Bench:
    """The bed and who is on it.

    Attributes:
        node: the flooded one, as root.
        login: where the victim works.
        attacker: who floods.
        victim: who works.
        seconds: of a phase.
        image: of the victim's pods; "" for no Kubernetes.
    """

    node: TestBed
    login: TestBed
    attacker: str
    victim: str
    seconds: float
    image: str

    def phase(self, samples: Samples, job: int, command: str = "") -> None:
        """Let the victim do all its works, each while the attacker runs a command."""
        for work in (self.jobs, self.pods) if self.image else (self.jobs,):
            flood = self.on_node(f"su - {self.attacker} -c '{command}'") if command else None
            for kind, took in work(job).items():
                samples.seen[kind] += took
            if flood:
                samples.cpu = max(samples.cpu, float(json.loads(flood.communicate()[0])["cpu_s"]) / self.seconds)

    def jobs(self, job: int) -> dict[str, list[float]]:
        """Start jobs, and ask the daemon."""
        asked = self.on_node(f"sleep 0.5; su - {self.victim} -c 'python3 {PLACE} get {self.working_s:g}'")
        starts = json.loads(self.login.run(f"sleep 0.5; python3 {FOLDER}/starts.py {self.working_s:g}"))
        return {"srun": starts, "job_get": json.loads(asked.communicate()[0])}

    def pods(self, job: int) -> dict[str, list[float]]:
        """Start pods, ask the API server, and ask the DNS of a pod on the node."""
        name = f"{job}.{self.victim}.{self.login.name}"
        inside = f"nsenter --net=/run/netns/isthmus-{job} su {self.victim} -c"
        asked = self.on_node(f"sleep 0.5; {inside} 'python3 {PLACE} resolve {self.working_s:g} {name}'")
        script = f"{FOLDER}/hostile_victim.py {self.image} {self.node.host} {self.working_s:g}"
        reported = self.login.run(f"sleep 0.5; /opt/isthmus/bin/python {script}")
        return {**json.loads(reported.splitlines()[-1]), "dns": json.loads(asked.communicate()[0])}

    def on_node(self, command: str) -> subprocess.Popen[str]:
        """Begin a command as root on the node."""
        return subprocess.Popen([*self.node.ssh, command], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    @property
    def working_s(self) -> float:
        """How long the victim works, within the flood."""
        return self.seconds - 1


STARTS = """
import json, subprocess, sys, time
srun = "srun --quiet --pod-network --overcommit --mem=10 --nodelist=NODE true".split()
until, reported = time.monotonic() + float(sys.argv[1]), []
while time.monotonic() < until:
    begin = time.perf_counter()
    subprocess.run(srun, check=True)
    reported.append(time.perf_counter() - begin)
print(json.dumps(reported))
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


@contextmanager
def kubernetes(bench: Bench) -> Iterator[None]:
    """Keep the victim's Kubernetes up, if its pods are measured."""
    if bench.image:
        bench.login.run("isthmus up")
    try:
        yield
    finally:
        if bench.image:
            bench.login.run("isthmus down")


def measure(bench: Bench, floods: Mapping[str, Flood], rounds: int, known: Mapping[str, int]) -> dict[str, Samples]:
    """Run all phases of all rounds; a first one fills caches and does not count."""
    seen: dict[str, Samples] = defaultdict(Samples)
    job = known["victim"]
    bench.phase(Samples(), job)
    for _ in range(rounds):
        for name, flood in floods.items():
            bench.phase(seen[QUIET + name], job)
            bench.phase(seen[name], job, flood.command(bench.seconds, known))
            bench.phase(seen[BURNER + name], job, flood.burner(bench.seconds, seen[name].cpu))
    return seen


def compare(seen: Mapping[str, Samples], floods: Iterable[str]) -> dict[str, dict[str, object]]:
    """Return each phase's figures; those of floods with ratios of medians to the quiet phase and to its burner."""
    figures = {name: samples.figures() for name, samples in seen.items()}
    for name in floods:
        for word, base in (("quiet", seen[QUIET + name]), ("burner", seen[BURNER + name])):
            ratios = {kind: round(seen[name].median(kind) / base.median(kind), 2) for kind in seen[name].seen}
            figures[name][f"to_{word}"] = ratios
    return figures


def prepare(bench: Bench) -> None:
    """Bring the programs."""
    bench.node.run(f"cat > {PLACE}", stdin=PROGRAM.read_text())
    bench.login.run(f"mkdir -p {FOLDER} && cat > {FOLDER}/starts.py", stdin=STARTS.replace("NODE", bench.node.host))
    for name in ("pod_rounds.py", "hostile_victim.py"):
        bench.login.run(f"cat > {FOLDER}/{name}", stdin=Path(__file__).with_name(name).read_text())


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="What one user's floods of a node's daemons cost another user.")
    parser.add_argument("--rounds", type=int, default=2, help="of all floods (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=8, help="a phase (default: %(default)s)")
    parser.add_argument("--node", default="c2", help="the node that is flooded (default: %(default)s)")
    parser.add_argument("--attacker", default="bob", help="(default: %(default)s)")
    parser.add_argument("--only", default="", help="floods whose name has this word")
    parser.add_argument("--without-pods", action="store_true", help="jobs alone, no Kubernetes")
    parser.add_argument("--quick", action="store_true", help="one round of short phases, to see that it works")
    testbed.add_arguments(parser)
    parser.set_defaults(user="carol")
    return parser.parse_args()


def main() -> int:
    """Measure in rounds and write JSON."""
    reported = arguments()
    rounds, seconds = (1, 4.0) if reported.quick else (reported.rounds, reported.seconds)
    node, login = TestBed(reported.name, reported.node, "root"), TestBed(reported.name, reported.host, reported.user)
    images = json.loads(login.run("cat /etc/isthmus/images.json"))["images"]
    image = "" if reported.without_pods else images["busybox"]["reference"]
    bench = Bench(node, login, reported.attacker, reported.user, seconds, image)
    floods = {name: flood for name, flood in FLOODS.items() if reported.only in name}
    prepare(bench)
    try:
        with kubernetes(bench), jobs(bench, login) as known:
            figures = compare(measure(bench, floods, rounds, known), floods)
    finally:
        node.run(f"rm -f {PLACE}; su - {reported.attacker} -c 'isthmus network list --json' > /dev/null")
    for name, one in figures.items():
        print(name, one)
    print(save("hostile", quick=reported.quick, rounds=rounds, seconds=seconds, goal=GOAL, figures=figures))
    return 0


if __name__ == "__main__":
    sys.exit(main())
