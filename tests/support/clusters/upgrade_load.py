"""What runs through an upgrade: jobs of a user on two nodes, and what accounting says of those that ended before.

A server and a client that asks it ten times a second, both in the user's pod network on different nodes; a step over
both nodes; MPI ranks on both nodes that hand a token around; a job that waits; ended jobs; a drain of somebody else's.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from tests.support.clusters import asking, jobs
from tests.support.clusters.cluster import Node
from tests.support.wait import wait

FOREIGN = "a disk of the admin's"
ENDED = 20
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
FILES = {"both": BOTH, "ring.c": RING}
# What takes the user to be asked again within a moment; each answer is a line with its time.
PING = "while :; do timeout 2 scontrol --quiet show config >/dev/null 2>&1 && date +%s.%N; sleep 0.2; done"
_UNIT = "isthmus-test-upgrade-ping"


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
    pings: str

    def assert_alive(self) -> None:
        """Fail where a job ended or began again."""
        asking.assert_ran_on(self.controller, *self.running.values())

    def accounting(self) -> str:
        """Return what accounting says of the ended jobs."""
        return _accounting(self.controller, self.ended)

    def longest_gap_s(self) -> float:
        """Return the longest time without an answer from the server, until now."""
        return asking.gaps(self.login, self.user, self.running["client"])["longest_gap_s"]

    def longest_away_s(self) -> float:
        """Return the longest time between two answers of slurmctld."""
        answers = self.login.output(f"journalctl --unit {self.pings} --output cat | grep -E '^[0-9.]+$'").split()
        return asking.gaps_between([float(answer) for answer in answers])["longest_gap_s"]

    def rounds(self) -> int:
        """How often the token has been around."""
        return int((jobs.written(self.login, self.user, self.running["ring"]).split() or ["-1"])[-1])


@contextmanager
def loaded(login: Node, controller: Node, two_computes: Sequence[Node], user: str) -> Iterator[Load]:
    """Keep all of it running meanwhile; the second node is drained by somebody else."""
    first, second = (node.name for node in two_computes)
    ended = [jobs.submit(login, user, "--mem=10", "true") for _ in range(ENDED)]
    for job in ended:
        jobs.wait_for_job(controller, job, "COMPLETED")
    found = asking.begin(login, controller, user, (first, second))
    for name, text in FILES.items():
        asking.write(login, user, name, text)
    login.run_as(user, "mpicc.mpich -o .asking-ring .asking-ring.c")
    both = f"{asking.NETWORK} --nodes=2 --ntasks-per-node=1"
    found["both"] = jobs.submit(login, user, both, "sh .asking-both")
    found["ring"] = jobs.submit(login, user, both, "srun --mpi=pmi2 ./.asking-ring")
    for job in found.values():
        jobs.wait_for_job(controller, job, "RUNNING")
    waiting = jobs.submit(login, user, "--mem=10 --hold", "true")
    # A journal keeps what units of other loads said.
    pings = f"{_UNIT}-{waiting}"
    load = Load(login, controller, user, found, waiting, ended, _accounting(controller, ended), pings)
    wait(lambda: jobs.written(login, user, found["ring"]))
    controller.output(f"scontrol update NodeName={second} State=DRAIN Reason={json.dumps(FOREIGN)}")
    login.output(f"systemd-run --quiet --collect --unit {pings} sh -c '{PING}'")
    try:
        yield load
    finally:
        login.run(f"systemctl stop {pings}")
        controller.run(f"scontrol update NodeName={second} State=RESUME")
        jobs.cancel(controller, waiting, *found.values())
        asking.remove(login, user)


def _accounting(controller: Node, ended: Sequence[str]) -> str:
    return controller.output(
        f"sacct --parsable2 --jobs={','.join(ended)} --format=JobID,State,Elapsed,User,NodeList,Start,End"
    )
