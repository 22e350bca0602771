"""What runs through an upgrade: jobs of a user on two nodes, and what accounting says of those that ended before.

A server and a client that asks it ten times a second, both in the user's pod network on different nodes; a step over
both nodes; MPI ranks on both nodes that hand a token around; a job that waits; ended jobs; a drain of somebody else's.
"""

from __future__ import annotations

import base64
import itertools
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from tests.support.clusters import jobs
from tests.support.clusters.cluster import Node
from tests.support.wait import wait

FOREIGN = "a disk of the admin's"
ENDED = 20
SERVE = "exec python3 -m http.server 8000 --directory /usr/share/doc/slurm-client\n"
ASK = """
import sys, time, urllib.request
while True:
    try:
        urllib.request.urlopen(f"http://{sys.argv[1]}:8000/", timeout=2).read()
        print(time.time(), flush=True)
    except OSError:
        pass
    time.sleep(0.1)
"""
BOTH = "exec srun --nodes=2 --ntasks=2 sh -c 'while :; do echo $SLURM_PROCID $(date +%s); sleep 1; done'\n"
RING = r"""
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>
/* The token is one greater with each rank; a lost or repeated message ends the program. */
int main(int argc, char **argv)
{
    int rank, size;
    long token = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (long round = 0;; round++) {
        if (rank) {
            MPI_Recv(&token, 1, MPI_LONG, rank - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            if (token != round * size + rank - 1) MPI_Abort(MPI_COMM_WORLD, 1);
        }
        token = round * size + rank;
        MPI_Send(&token, 1, MPI_LONG, (rank + 1) % size, 0, MPI_COMM_WORLD);
        if (rank == 0) {
            MPI_Recv(&token, 1, MPI_LONG, size - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            if (token != round * size + size - 1) MPI_Abort(MPI_COMM_WORLD, 1);
            printf("%ld\n", round);
            fflush(stdout);
        }
        usleep(100000);
    }
}
"""
FILES = {"serve": SERVE, "ask": ASK, "both": BOTH, "ring.c": RING}
# What takes the user to be asked again within a moment; each answer is a line with its time.
PING = "while :; do timeout 2 scontrol --quiet show config >/dev/null 2>&1 && date +%s.%N; sleep 0.2; done"
UNIT = "isthmus-test-upgrade-ping"


@dataclass
class Load:
    """What runs: who looks, and the ids of jobs."""

    login: Node
    controller: Node
    user: str
    running: dict[str, str]
    waiting: str
    ended: Sequence[str]
    accounted: str

    def assert_alive(self) -> None:
        """Fail where a job ended or began again."""
        for name, job in self.running.items():
            shown = jobs.fields(self.controller.output(f"scontrol show job {job}"))
            assert (shown["JobState"], shown["Restarts"]) == ("RUNNING", "0"), name

    def accounting(self) -> str:
        """Return what accounting says of the ended jobs."""
        return _accounting(self.controller, self.ended)

    def longest_gap_s(self) -> float:
        """Between two answers that the client got from the server."""
        return gap_s(jobs.written(self.login, self.user, self.running["client"]))

    def longest_away_s(self) -> float:
        """Between two answers of slurmctld."""
        return gap_s(self.login.output(f"journalctl --unit {UNIT} --output cat | grep -E '^[0-9.]+$'"))

    def rounds(self) -> int:
        """How often the token has been around."""
        return int((jobs.written(self.login, self.user, self.running["ring"]).split() or ["-1"])[-1])


def gap_s(written: str) -> float:
    """Return the longest time between two of these lines, each with a time in seconds."""
    times = [float(line) for line in written.split()]
    return max(later - earlier for earlier, later in itertools.pairwise(times))


@contextmanager
def loaded(login: Node, controller: Node, two_computes: Sequence[Node], user: str) -> Iterator[Load]:
    """Keep all of it running meanwhile; the second node is drained by somebody else."""
    first, second = (node.name for node in two_computes)
    ended = [jobs.submit(login, user, "--mem=10", "true") for _ in range(ENDED)]
    for job in ended:
        jobs.wait_for_job(controller, job, "COMPLETED")
    for name, text in FILES.items():
        login.run_as(user, f"echo {base64.b64encode(text.encode()).decode()} | base64 --decode >.upgrade-{name}")
    login.run_as(user, "mpicc.mpich -o .upgrade-ring .upgrade-ring.c")
    network = "--mem=64 --pod-network"
    both = f"{network} --nodes=2 --ntasks-per-node=1"
    found = {"server": jobs.submit(login, user, f"{network} --nodelist={first}", "sh .upgrade-serve")}
    jobs.wait_for_job(controller, found["server"], "RUNNING")
    asks = f"python3 .upgrade-ask {_address(login, user, found['server'])}"
    found["client"] = jobs.submit(login, user, f"{network} --nodelist={second}", asks)
    found["both"] = jobs.submit(login, user, both, "sh .upgrade-both")
    found["ring"] = jobs.submit(login, user, both, "srun --mpi=pmi2 ./.upgrade-ring")
    for job in found.values():
        jobs.wait_for_job(controller, job, "RUNNING")
    waiting = jobs.submit(login, user, "--mem=10 --hold", "true")
    load = Load(login, controller, user, found, waiting, ended, _accounting(controller, ended))
    for name in ("client", "ring"):
        wait(lambda name=name: jobs.written(login, user, found[name]))
    controller.output(f"scontrol update NodeName={second} State=DRAIN Reason={json.dumps(FOREIGN)}")
    login.output(f"systemd-run --quiet --collect --unit {UNIT} sh -c '{PING}'")
    try:
        yield load
    finally:
        login.run(f"systemctl stop {UNIT}")
        controller.run(f"scontrol update NodeName={second} State=RESUME")
        jobs.cancel(controller, waiting, *found.values())
        login.run_as(user, "rm -f .upgrade-*")


def _accounting(controller: Node, ended: Sequence[str]) -> str:
    return controller.output(
        f"sacct --parsable2 --jobs={','.join(ended)} --format=JobID,State,Elapsed,User,NodeList,Start,End"
    )


def _address(login: Node, user: str, job: str) -> str:
    """Of a job in its user's network."""
    rows = (line.split() for line in login.run_as(user, "isthmus network list").splitlines())
    return next(row[6] for row in rows if row[:1] == [job])
