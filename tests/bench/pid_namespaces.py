"""What does a PID namespace add to the start of a job with a pod network?

Slurm reads the plugin's arguments for each job, so one test bed has both kinds: in rounds of random order its hosts'
plugstack.conf has `init=` or has not, and jobs are started. The file is as it was at the end.
"""

from __future__ import annotations

import argparse
import json
import random
import shlex
import statistics
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from rich.progress import track

from isthmus.filters.network.layer import INIT
from tests.bench import rounds, testbed
from tests.bench.results import save

FILE = "/etc/slurm/plugstack.conf.d/isthmus.conf"
# Slurm reads all that is in the file's folder.
BESIDE = "/etc/slurm/isthmus-bench.new"
WITHOUT, WITH = "without", "with"
# The first job of a kind fills caches and counts not.
TIMED = """\
import json, shlex, subprocess, sys, time
seconds = []
for _ in range(int(sys.argv[1]) + 1):
    begun = time.monotonic()
    subprocess.run(shlex.split(sys.argv[2]), check=True, stdout=subprocess.DEVNULL)
    seconds.append(time.monotonic() - begun)
print(json.dumps(seconds[1:]))
"""
SPACE = "readlink /proc/{process}/ns/pid"
# Host -> what its file has.
Files = Mapping[testbed.TestBed, str]


@contextmanager
def switched(hosts: Sequence[testbed.TestBed]) -> Iterator[dict[str, Files]]:
    """Yield kind -> host -> what its file has, and give each host its own file back at the end."""
    found = {host: host.run(f"cat {FILE}") for host in hosts}
    bare = {
        host: " ".join(word for word in text.split() if not word.startswith("init=")) for host, text in found.items()
    }
    try:
        yield {WITHOUT: bare, WITH: {host: f"{text} init={INIT}" for host, text in bare.items()}}
    finally:
        for host, text in found.items():
            write(host, text)


def write(host: testbed.TestBed, text: str) -> None:
    """Replace a host's file as a whole."""
    host.run(f"cat > {BESIDE} && mv {BESIDE} {FILE}", stdin=f"{text.strip()}\n")


def measure(cluster: testbed.TestBed, jobs: int, nodes: int) -> float:
    """Return the median of the seconds that some jobs took, one after the other."""
    job = f"timeout 120 srun --quiet --nodes={nodes} --ntasks-per-node=1 --mem=100 --pod-network=private true"
    printed = cluster.run(f"python3 -c {shlex.quote(TIMED)} {jobs} {shlex.quote(job)}")
    seconds: list[float] = json.loads(printed)
    return statistics.median(seconds)


def check(cluster: testbed.TestBed, host: testbed.TestBed, kind: str) -> None:
    """Raise RuntimeError when jobs on a host are not of the kind that its file says."""
    job = f"srun --quiet --nodelist={host.host} --mem=100 --pod-network=private"
    apart = cluster.run(f"{job} {SPACE.format(process='self')}") != host.run(SPACE.format(process=1))
    if apart != (kind == WITH):
        raise RuntimeError(f"{kind}: a job on {host.host} {'has' if apart else 'lacks'} a PID namespace of its own")


def taken(
    cluster: testbed.TestBed, files: Mapping[str, Files], count: int, jobs: int, nodes: int
) -> list[dict[str, float]]:
    """Return for each round kind -> seconds of a job."""
    seen = []
    for number in track(range(count), description=f"{nodes} nodes"):
        one = {}
        for kind in random.sample(sorted(files), len(files)):
            for host, text in files[kind].items():
                write(host, text)
            if number == 0:
                check(cluster, next(iter(files[kind])), kind)
            one[kind] = measure(cluster, jobs, nodes)
        seen.append(one)
    return seen


def main() -> int:
    """Measure and write JSON."""
    parser = argparse.ArgumentParser(description="Time jobs with a pod network, with a PID namespace and without.")
    parser.add_argument("--rounds", type=int, default=20, help="of both kinds (default: %(default)s)")
    parser.add_argument("--jobs", type=int, default=3, help="of a kind in a round (default: %(default)s)")
    testbed.add_arguments(parser)
    arguments = parser.parse_args()
    cluster = testbed.TestBed(arguments.name, arguments.host, arguments.user)
    names = cluster.run("sinfo --noheader --Node --format=%N").split()
    hosts = [testbed.TestBed(arguments.name, name, "root") for name in dict.fromkeys([*names, arguments.host])]
    found = {}
    with switched(hosts) as files:
        for nodes in (1, 2):
            seconds = taken(cluster, files, arguments.rounds, arguments.jobs, nodes)
            added = [1000 * (one[WITH] - one[WITHOUT]) for one in seconds]
            low, high = rounds.confidence(added)
            found[nodes] = {
                "added_ms": round(statistics.median(added), 1),
                "confidence_95": (round(low, 1), round(high, 1)),
                "compared": rounds.compare(seconds, WITHOUT),
                "rounds": seconds,
            }
            print(nodes, {name: value for name, value in found[nodes].items() if name != "rounds"})
    print(save("pid_namespaces", nodes=found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
