"""`isthmus-node-health`: what Slurm does not see of a node. slurmd runs it (HealthCheckProgram in slurm.conf(5)).

A node with a problem is drained with the reason `isthmus: health: ...`. One that is well again is resumed, but only
from such a drain: an admin's stays. A node that was well at the last look, and still is, asks slurmctld nothing.

slurmd ends this program after a minute; each look has an end of its own, as a file server that is away answers nobody.
Only this node's faults count: an etcd that is away would else drain the whole cluster.
"""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Collection, Iterator
from pathlib import Path

from isthmus.cli.node.checks import CHECKS, ENVIRONMENT, problems_of
from isthmus.clients.process import ProcessError, run

PREFIX = "isthmus: health: "
# Gone after a boot, so that the first look asks whether a drain of before it is left.
WELL = Path("/run/isthmus-node-health.well")
SLURM_S = 10.0


def decide(problems: Collection[str], flags: Collection[str], reason: str) -> dict[str, str]:
    """What to set for a node, by its state's flags and the reason that Slurm has for it; nothing to leave it."""
    drained, ours = "DRAIN" in flags, reason.startswith(PREFIX)
    wanted = PREFIX + "; ".join(problems)
    if problems and (not drained or (ours and reason != wanted)):
        return {"State": "DRAIN", "Reason": wanted}
    return {"State": "RESUME"} if not problems and drained and ours else {}


def parse(shown: str) -> tuple[set[str], str]:
    """Read flags and reason from what `scontrol show node` prints; the reason without who set it and when."""
    lines = [line.strip() for line in shown.splitlines()]
    states = next((line.split()[0] for line in lines if line.startswith("State=")), "")
    reason = next((line.removeprefix("Reason=") for line in lines if line.startswith("Reason=")), "")
    return set(states.removeprefix("State=").split("+")), reason.rpartition(" [")[0]


def examine() -> Iterator[str]:
    """Yield what takes this node out of service."""
    for check in CHECKS:
        if check.drains:
            yield from problems_of(check)


def apply_health(problems: Collection[str], node: str) -> None:
    """Drain or resume the node where that is due.

    Raises:
        ProcessError: slurmctld did not answer; the next look tries again.
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
    """Look, and tell Slurm; the status is 0 also where something is wrong, for then Slurm knows it."""
    problems = list(examine())
    print("\n".join(problems) or "well")
    try:
        apply_health(problems, os.environ.get("SLURMD_NODENAME") or platform.node().partition(".")[0])
    except (ProcessError, OSError) as error:
        print(f"isthmus-node-health: {error}; see `journalctl -u slurmctld` on the controller", file=sys.stderr)
        _end(1)
    _end(0)


def _end(status: int) -> None:
    # A thread that waits for a file server would hold the interpreter's own end up.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)
