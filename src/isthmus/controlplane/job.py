"""The control plane's Slurm job: its options and its script; pure.

Slurm signals the batch shell alone before the time limit (--signal=B:), so the shell passes on what it hears, also
what it hears before it knows its child, or while the child does not listen yet. A control plane that was killed, and
not ended, begins again in the same job.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from isthmus.controlplane.commands.user_options import UserOptions
from isthmus.controlplane.layout import JOB_NAME, RESERVATION, Layout
from isthmus.controlplane.settings import Settings
from isthmus.model.network import Driver

# Read by the SPANK plugin at submission.
RESERVATION_VARIABLE = "ISTHMUS_RESERVATION"
_SCRIPT = """#!/bin/bash
# Written by `isthmus up`.
umask 077
signals=0
heard=
child=
pass() {{
    case $heard in
    TERM) kill -TERM $child ;;
    # A child that has just begun does not listen yet, so it hears this until it has ended.
    USR1) while sleep 0.5; do kill -USR1 $child || exit; done > /dev/null 2>&1 & ;;
    esac
}}
hear() {{
    signals=$((signals + 1))
    if [ -z "$heard" ] || [ "$1" = TERM ]; then
        heard=$1
        [ -z "$child" ] || pass
    fi
}}
trap 'hear TERM' TERM
trap 'hear USR1' USR1
while [ -z "$heard" ]; do
    child=
    (trap '' USR1; exec {python} -I -m isthmus.controlplane) &
    child=$!
    # Heard before there was a child to signal.
    [ -z "$heard" ] || pass
    seen=none
    status=127
    # A signal for this shell ends the wait, not the child; an ended child's status can be read only once.
    while [ $seen != $signals ]; do
        seen=$signals
        wait $child
        ended=$?
        [ $ended = 127 ] || status=$ended
    done
    # 137: killed by SIGKILL; by whomever, the cluster goes on.
    if [ $status != 137 ] || [ -n "$heard" ]; then
        exit $status
    fi
    echo "the control plane was killed; it begins again" >&2
    sleep 1
done
"""


@dataclass(frozen=True, slots=True)
class Submission:
    """What sbatch is given."""

    options: tuple[str, ...]
    script: str


def submission(
    settings: Settings, user_options: UserOptions, layout: Layout, python: Path, *, after: str = ""
) -> Submission:
    """Return the job.

    Args:
        settings: the site's.
        user_options: the user's.
        layout: the cluster's files.
        python: the interpreter of the nodes that has Isthmus.
        after: the job whose end it waits for; empty for none.
    """
    options = [
        f"--job-name={JOB_NAME}",
        "--nodes=1",
        "--ntasks=1",
        f"--cpus-per-task={settings.cpus}",
        f"--mem={user_options.memory_mib or settings.memory_mib}M",
        "--requeue",
        # The submitter's working directory may be removed; the kubelet's sbatch needs one that stays.
        f"--chdir={layout.folder}",
        "--open-mode=append",
        f"--output={layout.job_log}",
        f"--signal=B:USR1@{settings.handover_s}",
        f"--pod-network={settings.driver}" if settings.has_network else "",
        _option("partition", user_options.partition or settings.partition),
        _option("account", user_options.account),
        _option("qos", user_options.qos),
        _option("time", user_options.time or settings.time),
        _option("dependency", f"afterany:{after}" if after else ""),
    ]
    return Submission(tuple(option for option in options if option), _SCRIPT.format(python=python))


def _option(name: str, value: str) -> str:
    return f"--{name}={value}" if value else ""


def environment(settings: Settings) -> dict[str, str]:
    """Return what sbatch's environment must have besides: the reserved address, where there are any."""
    return {RESERVATION_VARIABLE: RESERVATION} if settings.driver is Driver.PRIVATE else {}
