"""MPIJobs that must end well at the first try: many small ones of each MPI, and some of many workers.

    python -m tests.bench.mpijobs --small 50 --wide 20 --workers 64
    python -m tests.bench.mpijobs --resume

A job counts when it succeeded, no pod of it failed, and each worker ran its rank. Results: results/mpijobs.json, after
each run, and a part of docs/results/mpi-operator.md with `--publish`. For many workers the test bed needs a
SlurmdTimeout of 300 (`slurm_conf_extra`): a busy slurmd is silent for longer than the 20 s of inventories/local.
"""

from __future__ import annotations

import argparse
import copy
import json
import os
import re
import shlex
import subprocess
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import yaml

from tests.bench import mpijobs_page, testbed
from tests.bench.results import RESULTS, save

RANK = re.compile(r"Rank \d+ on host (\S+)")
LIMIT_S = 900
# Ranks outnumber the machine's cores: waiting ones must not spin (inventories/local has the same for ranks of jobs).
SLEEPY = [
    {"name": "OMPI_MCA_mpi_yield_when_idle", "value": "1"},
    {"name": "OMPI_MCA_threads_pthreads_yield_strategy", "value": "nanosleep"},
]
Object = dict[str, Any]


@dataclass(frozen=True)
class Run:
    """One job.

    Attributes:
        mpi: whose.
        workers: how many.
        seconds: from the request until it had ended.
        hosts: on which ranks ran.
        problem: why it does not count; empty for one that does.
        load: of the machine when it had ended.
    """

    mpi: str
    workers: int
    seconds: float
    hosts: int
    problem: str
    load: float


@dataclass(frozen=True)
class Cluster:
    """A user's cluster with MPIJobs."""

    bed: testbed.TestBed
    examples: dict[str, Object]

    def kubectl(self, command: str, text: str = "") -> str:
        """Run kubectl."""
        return self.bed.run(
            f"bash -lc {shlex.quote(f'kubectl --kubeconfig=$HOME/.isthmus/kubeconfig {command}')}", text
        )

    def job(self, name: str, mpi: str, workers: int) -> Object:
        """Return the site's example with so many workers."""
        job = copy.deepcopy(self.examples[mpi])
        job["metadata"]["name"] = name
        replicas = job["spec"]["mpiReplicaSpecs"]
        replicas["Worker"]["replicas"] = workers
        job["spec"]["runPolicy"]["backoffLimit"] = 0
        (launcher,) = replicas["Launcher"]["template"]["spec"]["containers"]
        launcher["command"] = ["mpirun", "-n", str(workers), "/home/mpiuser/pi"]
        (worker,) = replicas["Worker"]["template"]["spec"]["containers"]
        # mpirun has a client of ssh for each of its neighbours, and 128 MiB of the example are for two.
        launcher["resources"] = {"requests": {"cpu": "1", "memory": f"{128 + 8 * workers}Mi"}}
        for each in (launcher, worker):
            each["env"] = [*each.get("env", []), *SLEEPY]
        worker["resources"] = {"requests": {"cpu": "1", "memory": "128Mi"}}
        return job

    def run(self, jobs: Sequence[Object], mpi: str, workers: int) -> list[Run]:
        """Run some at once, and look at each."""
        open_names, found = [job["metadata"]["name"] for job in jobs], list[Run]()
        # One that an interrupted run has left would have ended before it began.
        self.kubectl(f"delete --ignore-not-found --wait mpijobs {' '.join(open_names)}")
        began = time.monotonic()
        self.kubectl("create -f -", "\n---\n".join(json.dumps(job) for job in jobs))
        while open_names:
            for item in self._asked():
                name, ended = item["metadata"]["name"], _ended(item)
                if name in open_names and ended:
                    open_names.remove(name)
                    found.append(self._judged(name, ended, mpi, workers, time.monotonic() - began))
            if time.monotonic() - began > LIMIT_S:
                load = round(os.getloadavg()[0], 1)
                found += [Run(mpi, workers, LIMIT_S, 0, f"{name} has not ended", load) for name in open_names]
                break
            time.sleep(1)
        self.kubectl(f"delete --wait mpijobs {' '.join(job['metadata']['name'] for job in jobs)}")
        return found

    def _asked(self) -> list[Object]:
        """Return the jobs; none where this question failed, for a run of many minutes must not end by one login."""
        try:
            answer = self.kubectl("get mpijobs --output=json")
        except subprocess.CalledProcessError as error:
            print(f"not answered, asked again: exit {error.returncode}", flush=True)
            return []
        items: list[Object] = json.loads(answer)["items"]
        return items

    def _judged(self, name: str, ended: str, mpi: str, workers: int, seconds: float) -> Run:
        hosts = len(set(RANK.findall(self.kubectl(f"logs job/{name}-launcher"))))
        statuses = json.loads(self.kubectl(f"get mpijob {name} --output=json"))["status"]["replicaStatuses"]
        failed = sum(each.get("failed", 0) for each in statuses.values())
        is_well = ended == "Succeeded" and not failed and hosts == workers
        problem = "" if is_well else f"{name}: {ended}, {failed} failed, ranks on {hosts} hosts"
        return Run(mpi, workers, round(seconds, 2), hosts, problem, round(os.getloadavg()[0], 1))


def main() -> int:
    """Run them; the exit status says whether all ended well."""
    parser = argparse.ArgumentParser(description="Count MPIJobs that end well at the first try.")
    testbed.add_arguments(parser)
    parser.add_argument("--small", type=int, default=50, help="jobs of two workers for each MPI (default: %(default)s)")
    parser.add_argument("--at-once", type=int, default=5, help="of these (default: %(default)s)")
    parser.add_argument("--wide", type=int, default=20, help="jobs of many workers (default: %(default)s)")
    parser.add_argument("--workers", type=int, default=64, help="of these (default: %(default)s)")
    parser.add_argument("--mpis", default="", help="names, by commas (default: all that the site has)")
    parser.add_argument("--publish", action="store_true", help="write the part of docs/results/mpi-operator.md as well")
    parser.add_argument("--resume", action="store_true", help="keep the runs of results/mpijobs.json, and do the rest")
    arguments = parser.parse_args()
    bed = testbed.TestBed(arguments.name, arguments.host, arguments.user)
    reported = json.loads(bed.run("bash -lc 'isthmus up >&2 && isthmus workloads add mpi --json'"))["workloads"][0]
    items = [yaml.safe_load(bed.run(f"cat {path}")) for path in reported["examples"]]
    examples = {item["metadata"]["name"].removeprefix("pi-"): item for item in items}
    cluster, runs = Cluster(bed, examples), _earlier() if arguments.resume else []
    for jobs, mpi, workers in plan(cluster, arguments, Counter((run.mpi, run.workers) for run in runs)):
        runs += _reported(cluster.run(jobs, mpi, workers))
        path = save("mpijobs", runs=[asdict(each) for each in runs])
        if arguments.publish:
            mpijobs_page.publish(json.loads(path.read_text()))
    bad = [each.problem for each in runs if each.problem]
    print(f"{len(runs) - len(bad)} of {len(runs)} ended well at the first try", *bad, sep="\n")
    return 1 if bad else 0


def _earlier() -> list[Run]:
    path = RESULTS / "mpijobs.json"
    return [Run(**each) for each in json.loads(path.read_text())["runs"]] if path.exists() else []


def plan(
    cluster: Cluster, arguments: argparse.Namespace, done: Counter[tuple[str, int]]
) -> Iterator[tuple[list[Object], str, int]]:
    """Give jobs that run at once, their MPI, and how many workers each has; as many less as are done."""
    for mpi in arguments.mpis.split(",") if arguments.mpis else cluster.examples:
        for first in range(done[mpi, 2], arguments.small, arguments.at_once):
            places = range(first, min(first + arguments.at_once, arguments.small))
            yield [cluster.job(f"{mpi}-{place}", mpi, 2) for place in places], mpi, 2
    for place in range(done["openmpi", arguments.workers], arguments.wide):
        yield [cluster.job(f"wide-{place}", "openmpi", arguments.workers)], "openmpi", arguments.workers


def _ended(item: Object) -> str:
    conditions = item.get("status", {}).get("conditions") or []
    true = [each["type"] for each in conditions if each["status"] == "True"]
    return next((kind for kind in ("Succeeded", "Failed") if kind in true), "")


def _reported(runs: list[Run]) -> list[Run]:
    for each in runs:
        outcome = each.problem or f"{each.hosts} hosts"
        print(f"{each.mpi}, {each.workers} workers: {each.seconds:.1f} s, {outcome}", flush=True)
    return runs


if __name__ == "__main__":
    raise SystemExit(main())
