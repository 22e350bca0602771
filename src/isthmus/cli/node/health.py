"""`isthmus-node-health`: the node's health check, which slurmd runs (HealthCheckProgram in slurm.conf(5)).

A node with a problem is drained with the reason `isthmus: health: ...`. A recovered one is resumed, but only from such
a drain: an administrator's stays. A node that was and is healthy sends slurmctld no request.

slurmd kills this program after a minute; each check has its own timeout, as a file server may hang. Only faults of this
node count: otherwise an outage of etcd would drain the whole cluster.
"""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Collection, Iterator
from pathlib import Path

from isthmus.clients.process import ProcessError, run
from isthmus.monitoring.checks import CHECKS, ENVIRONMENT, problems_of

PREFIX = "isthmus: health: "
# Gone after a boot, so that the first check looks for a drain from before.
WELL = Path("/run/isthmus-node-health.well")
SLURM_S = 10.0


def decide(problems: Collection[str], flags: Collection[str], reason: str) -> dict[str, str]:
    """Return the update of a node, by its state's flags and its reason in Slurm; empty for none."""
    drained, ours = "DRAIN" in flags, reason.startswith(PREFIX)
    wanted = PREFIX + "; ".join(problems)
    if problems and (not drained or (ours and reason != wanted)):
        return {"State": "DRAIN", "Reason": wanted}
    return {"State": "RESUME"} if not problems and drained and ours else {}


def parse(shown: str) -> tuple[set[str], str]:
    """Parse flags and reason from `scontrol show node`; the reason without its author and time."""
    lines = [line.strip() for line in shown.splitlines()]
    states = next((line.split()[0] for line in lines if line.startswith("State=")), "")
    reason = next((line.removeprefix("Reason=") for line in lines if line.startswith("Reason=")), "")
    return set(states.removeprefix("State=").split("+")), reason.rpartition(" [")[0]


def examine() -> Iterator[str]:
    """Yield the problems that drain this node."""
    for check in CHECKS:
        if check.drains:
            yield from problems_of(check)


def apply_health(problems: Collection[str], node: str) -> None:
    """Drain or resume the node if needed.

    Raises:
        ProcessError: slurmctld did not answer; the next check retries.
    """
    if not problems and WELL.exists():
        return
    WELL.unlink(missing_ok=True)
    shown = run(["scontrol", "show", "node", node], timeout_s=SLURM_S, environment=ENVIRONMENT).stdout
    changes = [f"{key}={value}" for key, value in decide(problems, *parse(shown)).items()]
    if changes:
        run(["scontrol", "update", f"NodeName={node}", *changes], timeout_s=SLURM_S, environment=ENVIRONMENT)
    if not problems:
        WELL.touch()


def main() -> None:
    """Check, and update Slurm; the status is 0 also with problems, as Slurm then has them."""
    problems = list(examine())
    print("\n".join(problems) or "well")
    try:
        apply_health(problems, os.environ.get("SLURMD_NODENAME") or platform.node().partition(".")[0])
    except (ProcessError, OSError) as error:
        print(f"isthmus-node-health: {error}; see `journalctl -u slurmctld` on the controller", file=sys.stderr)
        _end(1)
    _end(0)


def _end(status: int) -> None:
    # A thread that hangs on a file server would block the interpreter's exit.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)
