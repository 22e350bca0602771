"""What tests do with Slurm: submit as a user, look at jobs and nodes, wait for states."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from tests.support.clusters.cluster import Node
from tests.support.wait import wait

ENDED = {"BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY", "TIMEOUT"}
IDLE = {"idle", "mixed", "allocated"}


def fields(shown: str) -> dict[str, str]:
    """Read the `Key=value` words of scontrol show."""
    return dict(re.findall(r"(\S+?)=(\S*)", shown))


def settings(controller: Node) -> dict[str, str]:
    """Return what slurmctld says about its settings."""
    shown = controller.output("scontrol show config")
    return {key.strip(): value.strip() for key, _, value in (line.partition("=") for line in shown.splitlines())}


def submit(login: Node, user: str, options: str, command: str, variables: str = "") -> str:
    """Submit a one-line batch job with its output in the user's home; return its id. `variables` are sbatch's own."""
    sbatch = f"{variables} sbatch --parsable --output=.isthmus-test-%j.out {options} --wrap {shlex.quote(command)}"
    return login.run_as(user, sbatch.strip())


def state(controller: Node, job: str) -> str:
    """Return the state of a job from accounting, which remembers ended jobs."""
    asked = controller.run(f"sacct --noheader --allocations --parsable2 --format=State --jobs={job}")
    # Also where slurmdbd does not answer just now: who waits asks again.
    found = asked.stdout.split() if asked.rc == 0 else []
    return found[0] if found else f"UNKNOWN {asked.stderr}".strip()


def wait_for_job(controller: Node, job: str, *wanted: str, timeout_s: float = 180) -> str:
    """Wait until a job is in one of these states; another end is an error."""
    return wait(
        lambda: state(controller, job),
        lambda seen: seen in wanted,
        lambda seen: seen in ENDED - {*wanted},
        timeout_s=timeout_s,
    )


def output(login: Node, user: str, job: str) -> str:
    """Return what a batch job wrote."""
    return login.run_as(user, f"cat .isthmus-test-{job}.out")


def written(login: Node, user: str, job: str) -> str:
    """Return what a batch job has written so far: nothing yet where it runs, and its prolog too."""
    return login.run_as(user, f"cat .isthmus-test-{job}.out 2>/dev/null || true")


def pending_reason(controller: Node, job: str) -> str:
    """Return why a job waits."""
    return controller.output(f"squeue --noheader --format=%r --jobs={job}")


@contextmanager
def running(login: Node, controller: Node, user: str, options: str = "", command: str = "sleep 300") -> Iterator[str]:
    """Keep a job running meanwhile; yield its id."""
    job = submit(login, user, options, command)
    try:
        wait_for_job(controller, job, "RUNNING")
        yield job
    finally:
        cancel(controller, job)


def cancel(controller: Node, *jobs: str) -> None:
    """End jobs and wait until they have left their nodes."""
    controller.run(f"scancel {' '.join(jobs)}")
    wait(lambda: controller.output(f"squeue --noheader --jobs={','.join(jobs)} 2>/dev/null || true") == "")


def node_states(controller: Node) -> dict[str, str]:
    """Return the state of every node in Slurm."""
    shown = controller.output("sinfo --all --Node --noheader --format='%N %T'")
    return dict(line.split() for line in shown.splitlines())


def wait_for_nodes(controller: Node, *names: str, timeout_s: float = 180) -> None:
    """Wait until these nodes take jobs."""
    wait(
        lambda: {name: found for name, found in node_states(controller).items() if name in names},
        lambda found: set(found) == set(names) and set(found.values()) <= IDLE,
        timeout_s=timeout_s,
    )


def wait_for_daemons(nodes: Iterable[Node], *, timeout_s: float = 240) -> None:
    """Wait until Slurm's own daemon runs on each of these nodes.

    States in Slurm are no evidence: slurmctld remembers those from before it stopped, and a login node has none.
    """
    running = "; ".join(
        f"! systemctl --quiet is-enabled {unit} 2>/dev/null || systemctl is-active {unit} || exit 1"
        for unit in ("slurmctld", "slurmd", "sackd")
    )
    wait(
        lambda: [node.name for node in nodes if node.run(running).rc != 0],
        lambda missing: not missing,
        timeout_s=timeout_s,
    )


def wait_until_saved(controller: Node, job: str) -> None:
    """Wait until slurmctld has written down what it knows of a job: it may take 5 s (its state save thread)."""
    now = int(controller.output("date +%s"))
    written = f"stat --format=%Y {settings(controller)['StateSaveLocation']}/job_state"
    # It writes when something has changed; a job that was saved a moment ago changes once more.
    controller.run(f"sleep 1; scontrol update JobId={job} Comment=saved")
    wait(lambda: int(controller.output(written)) > now)
