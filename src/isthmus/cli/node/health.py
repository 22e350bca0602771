"""`isthmus-node-health`: what Slurm does not see of a node. slurmd runs it (HealthCheckProgram in slurm.conf(5)).

A node with a problem is drained with the reason `isthmus: health: ...`. One that is well again is resumed, but only
from such a drain: an admin's stays. A node that was well at the last look, and still is, asks slurmctld nothing.

slurmd ends this program after a minute; each look has an end of its own, as a file server that is away answers nobody.
Only this node's faults count: an etcd that is away would else drain the whole cluster.
"""

from __future__ import annotations

import os
import platform
import stat
import sys
import time
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from threading import Thread

from isthmus.clients.process import ProcessError, run
from isthmus.network.api.client import ROOT_SOCKET, ask
from isthmus.network.api.messages import Status
from isthmus.network.api.protocol import RequestError

PREFIX = "isthmus: health: "
HOME = Path("/home")
FUSE = Path("/dev/fuse")
MOUNTS_WANTED = Path("/etc/fstab")
MOUNTS = Path("/proc/self/mounts")
NETWORK = Path("/etc/isthmus/network.json")
DISKS = (Path("/tmp"), Path("/var"))  # noqa: S108
# Gone after a boot, so that the first look asks whether a drain of before it is left.
WELL = Path("/run/isthmus-node-health.well")
HOME_S = 10.0
# A daemon that restarts is back within this.
NETWORK_S = 20.0
SLURM_S = 10.0
FREE_LEAST = 0.01
_ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}


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


def missing_mounts(wanted: str, mounted: str) -> list[str]:
    """Folders of /etc/fstab on which nothing is mounted; no file is touched, as that could wait for ever."""
    there = {words[1] for line in mounted.splitlines() if len(words := line.split()) > 1}
    entries = [words for line in wanted.splitlines() if len(words := line.split()) > 3 and not words[0].startswith("#")]
    folders = [words[1] for words in entries if not {"noauto", "nofail"} & {*words[3].split(",")}]
    return [folder for folder in folders if folder.startswith("/") and folder not in there]


def answers(look: Callable[[], object], timeout_s: float) -> bool:
    """Return whether a look ends without an error in time; one that hangs is left behind."""
    done = []

    def to_the_end() -> None:
        try:
            look()
        except OSError:
            return
        done.append(True)

    thread = Thread(target=to_the_end, daemon=True)
    thread.start()
    thread.join(timeout_s)
    return bool(done)


def full(found: os.statvfs_result) -> bool:
    """Return whether a file system lacks room or names; 0 names in all means that it does not count them."""
    return found.f_bavail < found.f_blocks * FREE_LEAST or found.f_favail < found.f_files * FREE_LEAST


def network_answers(until: float) -> bool:
    """Return whether this node's daemon of the pod networks answers, or does so within a moment."""
    while True:
        try:
            ask(Status(), ROOT_SOCKET, timeout_s=max(0.1, until - time.monotonic()))
        except RequestError:
            return True
        except (OSError, ValueError):
            if time.monotonic() + 1 > until:
                return False
            time.sleep(1)
        else:
            return True


def fuse_is_open() -> bool:
    """Return whether /dev/fuse is a device that every user may open."""
    try:
        mode = FUSE.stat().st_mode
    except OSError:
        return False
    return stat.S_ISCHR(mode) and mode & 0o666 == 0o666


def examine() -> Iterator[str]:
    """Yield what is wrong with this node; a word that changes at each look would change the reason each time."""
    wanted = MOUNTS_WANTED.read_text() if MOUNTS_WANTED.exists() else ""
    yield from (f"{folder} is not mounted" for folder in missing_mounts(wanted, MOUNTS.read_text()))
    if not answers(lambda: os.listdir(HOME), HOME_S):
        yield f"{HOME} does not answer"
    if not fuse_is_open():
        yield f"{FUSE} is missing or closed to users"
    yield from (f"{disk} is full" for disk in DISKS if full(os.statvfs(disk)))
    if NETWORK.exists() and not network_answers(time.monotonic() + NETWORK_S):
        yield "isthmus-networkd does not answer"


def apply_health(problems: Collection[str], node: str) -> None:
    """Drain or resume the node where that is due.

    Raises:
        ProcessError: slurmctld did not answer; the next look tries again.
    """
    if not problems and WELL.exists():
        return
    WELL.unlink(missing_ok=True)
    shown = run(["scontrol", "show", "node", node], timeout_s=SLURM_S, environment=_ENVIRONMENT).stdout
    changes = [f"{key}={value}" for key, value in decide(problems, *parse(shown)).items()]
    if changes:
        run(["scontrol", "update", f"NodeName={node}", *changes], timeout_s=SLURM_S, environment=_ENVIRONMENT)
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
