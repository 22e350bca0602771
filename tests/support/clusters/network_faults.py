"""A job with a pod network on two nodes, and one daemon that dies at a chosen phase of it.

Prolog, task start and epilog ask the node's network daemon. While it is stopped (SIGSTOP) they wait, so the other
daemon's death falls into that phase, and not just somewhere near it. The job's script waits for files. It starts one
step: a second one, begun while a daemon is being restarted, would be in phase TASK again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from enum import StrEnum
from functools import partial

from tests.support.clusters import jobs
from tests.support.clusters.cluster import Cluster, Node
from tests.support.wait import wait

SEEN = "sees eth0 lo"
SCRIPT = """\
#!/bin/bash
echo began
until test -e .isthmus-test-$SLURM_JOB_ID.step; do sleep 0.1; done
srun --mem=20 sh -c 'echo first $(hostname) sees $(ls /sys/class/net)' || exit
until test -e .isthmus-test-$SLURM_JOB_ID.end; do sleep 0.1; done
echo last $(hostname) sees $(ls /sys/class/net)
"""
OPTIONS = "--hold --no-requeue --pod-network --nodes=2 --ntasks-per-node=1 --mem=60 --time=5"
# srun gives up on a task whose slurmd died while it was starting it, but not soon.
LAUNCH_S = 240
WAITING = "ss --unix --listening --no-header src /run/isthmus/networkd-root.sock"


class Phase(StrEnum):
    """Where the job is when the daemon dies, in the order of a job's life."""

    BEFORE = "before"
    PROLOG = "prolog"
    TASK = "task_start"
    RUNNING = "running"
    EPILOG = "epilog"
    AFTER = "after"


class Daemon(StrEnum):
    """Who dies; as systemd names it."""

    NETWORKD = "isthmus-networkd"
    ETCD = "isthmus-etcd"
    SLURMD = "slurmd"
    SLURMCTLD = "slurmctld"


HELD = {Phase.PROLOG, Phase.TASK, Phase.EPILOG}
CASES = [(daemon, phase) for daemon in Daemon for phase in Phase]


@dataclass(frozen=True)
class Ended:
    """How a job ended: Slurm's word, and what its user reads."""

    state: str
    reported: str

    @property
    def ran(self) -> bool:
        """Whether all tasks ran, in pods."""
        return self.state == "COMPLETED" and len(re.findall(f"^(?:first|last) \\S+ {SEEN}$", self.reported, re.M)) == 3

    @property
    def failed_clearly(self) -> bool:
        """Whether the user can know why it did not run: by words, or by a state that says all."""
        said = re.search(r"^(srun|slurmstepd\S*): error: ", self.reported, re.MULTILINE)
        return self.state == "NODE_FAIL" or (self.state in {"FAILED", "CANCELLED"} and said is not None)


@dataclass(frozen=True)
class Fault:
    """One daemon's death at one phase; it happens on the job's first node, or where the daemon has its place."""

    cluster: Cluster
    user: str
    daemon: Daemon
    phase: Phase

    @property
    def node(self) -> Node:
        """The job's first node."""
        return self.cluster.computes[0]

    def run(self) -> Ended:
        """Let it happen; return how the job ended, once all daemons live again."""
        login, names = self.cluster.submit, [node.name for node in self.cluster.computes[:2]]
        options = f"--parsable --output=.isthmus-test-%j.out {OPTIONS} --nodelist={','.join(names)}"
        job = login.run_as(self.user, f"sbatch {options} <<'END'\n{SCRIPT}END")
        try:
            before = self._live(job)
            wait(lambda: self.state(job), lambda state: state in jobs.ENDED, timeout_s=240)
            self._wait_until_alive(before)
            jobs.wait_for_nodes(self.cluster.controller, *names)
            return Ended(self.state(job), login.run_as(self.user, f"cat .isthmus-test-{job}.out || true"))
        finally:
            jobs.cancel(self.cluster.controller, job)
            login.run_as(self.user, f"rm -f .isthmus-test-{job}.*")

    def state(self, job: str) -> str:
        """Return what slurmctld says of the job; nothing when it does not answer."""
        shown = self.cluster.controller.run(f"scontrol --oneliner show job {job}").stdout
        return jobs.fields(shown).get("JobState", "")

    def _live(self, job: str) -> str:
        """Lead the job through its phases; return the pid of the daemon that died on the way."""
        nothing = partial(bool)
        # Each phase: what leads into it, and what shows that it is over.
        ways: dict[Phase, tuple[Callable[[], object], Callable[[], object]]] = {
            Phase.BEFORE: (nothing, nothing),
            Phase.PROLOG: (partial(self._answered, f"scontrol release {job}"), partial(self._reached, job, "began", 1)),
            Phase.TASK: (partial(self._begin_step, job), partial(self._reached, job, "first", 2)),
            Phase.RUNNING: (nothing, nothing),
            Phase.EPILOG: (partial(self._touch, job, "end"), partial(self._reached, job, "last", 1)),
            Phase.AFTER: (nothing, nothing),
        }
        died = ""
        for phase, (enter, leave) in ways.items():
            with self._held() if phase == self.phase and phase in HELD else nullcontext():
                enter()
                if phase == self.phase:
                    died = self._die(job)
            # A step that begins while slurmctld is down fails after MessageTimeout, with a pod network or without.
            if died and phase != Phase.BEFORE:
                self._wait_until_alive(died)
            leave()
        return died

    def _begin_step(self, job: str) -> None:
        """Begin it where slurmctld knows the nodes: after a restart it calls them busy until they have registered.

        srun then waits for another step's end, or longer than a minute: tests/full/test_slurmctld_restart.py.
        """
        jobs.wait_for_nodes(self.cluster.controller, *(node.name for node in self.cluster.computes[:2]))
        self._touch(job, "step")

    def _touch(self, job: str, name: str) -> None:
        self.cluster.submit.run_as(self.user, f"touch .isthmus-test-{job}.{name}")

    def _reached(self, job: str, word: str, lines: int) -> None:
        """Wait until so many tasks have said something; those of a job that has failed do not."""
        login = self.cluster.submit
        reported = f"grep --count '^{word}' .isthmus-test-{job}.out"
        wait(
            lambda: login.try_as(self.user, reported).stdout.strip() == str(lines) or self._over(job),
            timeout_s=LAUNCH_S,
        )

    def _over(self, job: str) -> bool:
        return self.state(job) in jobs.ENDED

    def _answered(self, command: str) -> None:
        wait(lambda: self.cluster.controller.run(command).rc == 0)

    def _asked(self) -> bool:
        """Return whether somebody waits for the stopped daemon to take his connection."""
        return any(line.split()[2] != "0" for line in self.node.run(WAITING).stdout.splitlines())

    @contextmanager
    def _held(self) -> Iterator[None]:
        signal = "systemctl kill --kill-whom=main --signal={} isthmus-networkd"
        self.node.output(signal.format("STOP"))
        try:
            yield
        finally:
            self.node.run(signal.format("CONT"))

    @property
    def _place(self) -> Node:
        places = {Daemon.ETCD: self.cluster.part("etcd")[0], Daemon.SLURMCTLD: self.cluster.controller}
        return places.get(self.daemon, self.node)

    def _pid(self) -> str:
        return self._place.output(f"systemctl show --property=MainPID --value {self.daemon}")

    def _wait_until_alive(self, dead: str) -> None:
        wait(lambda: self._pid() not in {dead, "0"})
        self._answered("scontrol ping | grep -q UP")

    def _die(self, job: str) -> str:
        """End the daemon as a crash would; what slurmctld has not written down yet, it would forget."""
        if self.phase in HELD:
            wait(lambda: self._asked() or self._over(job), timeout_s=40, interval_s=0.1)
        if self.daemon == Daemon.SLURMCTLD:
            jobs.wait_until_saved(self.cluster.controller, job)
        pid = self._pid()
        assert pid != "0", f"{self.daemon} does not run"
        self._place.output(f"kill -9 {pid}")
        return pid
