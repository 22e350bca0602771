"""`isthmus down`: stops the control plane in order, cancels pods' jobs, and with --purge removes all files.

The control plane first, or it would replace the pods that end. Files that pods wrote as other users inside belong to
the user's subordinate uids; a user namespace that has all of them may remove them.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from isthmus.clients import subids
from isthmus.clients.process import ProcessError
from isthmus.clients.slurm import own_jobs as slurm_jobs
from isthmus.clients.slurm.own_jobs import Job
from isthmus.controlplane.commands.context import Context, Timing, control_planes, jobs, pod_jobs
from isthmus.controlplane.data import claims, location, node_disk
from isthmus.controlplane.errors import ControlPlaneError
from isthmus.controlplane.layout import RESERVATION
from isthmus.controlplane.network import NetworkError
from isthmus.controlplane.pki import kubeconfig
from isthmus.controlplane.settings import DataLocation

GONE_S = 90.0


@dataclass(frozen=True, slots=True)
class Down:
    """What was ended and removed.

    Attributes:
        schema: changes when a field changes its meaning.
        jobs: the control plane's.
        pods: jobs of pods.
        removed: folders and files.
        left: the node whose disk still has data.
    """

    schema: int
    jobs: tuple[str, ...]
    pods: tuple[str, ...]
    removed: tuple[str, ...]
    left: str = ""


def down(context: Context, progress: Callable[[str], None], *, keep_pods: bool = False, purge: bool = False) -> Down:
    """Stop the user's cluster; idempotent.

    Args:
        context: of the user.
        progress: gets what is being waited for.
        keep_pods: leave pods' jobs running; the next control plane finds them.
        purge: remove the data too; pods go in any case.

    Raises:
        ControlPlaneError: something did not end, or a file could not be removed.
    """
    if purge and context.home.cluster.folder.is_dir():
        # Only the control plane reaches the disk of its node.
        context.home.cluster.purge.touch(mode=0o600)
    ended = _end_control_plane(progress, context.timing)
    pods = [] if keep_pods and not purge else pod_jobs(context.home, jobs())
    _cancel(pods)
    _wait_for_end(pods, progress, GONE_S, context.timing.down_s)
    left = _left_on_a_disk(context) if purge else ""
    removed = _purge(context) if purge else ()
    return Down(1, ended, tuple(job.id for job in pods), removed, left)


def _left_on_a_disk(context: Context) -> str:
    """Return the node that has data which nobody removes now."""
    files = context.home.cluster
    # The control plane takes the sign away when it has removed them itself.
    if not files.folder.is_dir() or files.purge.name not in os.listdir(files.folder):
        return ""
    claim = claims.read(files)
    is_elsewhere = claim is not None and claim.data is DataLocation.NODE and claim.node != location.node()
    return claim.node if claim is not None and is_elsewhere else ""


def _end_control_plane(progress: Callable[[str], None], timing: Timing) -> tuple[str, ...]:
    ended: list[str] = []
    # One that is about to hand over may submit a successor meanwhile.
    while found := control_planes(jobs()):
        runs = [job for job in found if job.state == "RUNNING"]
        # A successor would start as soon as the first one has ended.
        _cancel([job for job in found if job not in runs])
        _cancel(runs, in_order=True)
        if not _wait_for_end(runs, progress, timing.orderly_s, timing.down_s, must=False):
            _cancel(runs)
        _wait_for_end(found, progress, GONE_S, timing.down_s)
        ended += [job.id for job in found]
    return tuple(ended)


def _cancel(ended: list[Job], *, in_order: bool = False) -> None:
    try:
        slurm_jobs.cancel([job.id for job in ended], in_order=in_order)
    except ProcessError as error:
        raise ControlPlaneError(f"{error}; try again when Slurm answers") from error


def _wait_for_end(
    ended: list[Job], progress: Callable[[str], None], wait_s: float, pause_s: float, *, must: bool = True
) -> bool:
    deadline_s = time.monotonic() + wait_s
    wanted = {job.id for job in ended}
    while left := wanted & {job.id for job in jobs()} if wanted else set():
        progress(f"waiting for the end of job {' '.join(sorted(left))}")
        if time.monotonic() > deadline_s:
            if must:
                raise ControlPlaneError(f"jobs {' '.join(sorted(left))} do not end; an admin looks at their nodes")
            return False
        time.sleep(pause_s)
    return True


def _purge(context: Context) -> tuple[str, ...]:
    home = context.home
    # This host may be the one; on others, the next start there removes what is left.
    removed = [str(folder) for folder in node_disk.remove(home.cluster, context.settings.data_dir)]
    targets = [home.cluster.folder, home.pods, home.folder / "volumes", home.kubeconfig, home.folder / "up.lock"]
    for target in targets:
        if target.exists():
            _remove(target)
            removed.append(str(target))
    if kubeconfig.withdraw(home.usual_kubeconfig):
        removed.append(str(home.usual_kubeconfig))
    if context.network is not None:
        try:
            context.network.unreserve(RESERVATION)
        except NetworkError as error:
            raise ControlPlaneError(f"all files are gone, but the address is still reserved: {error}") from error
    return tuple(removed)


def _remove(target: Path) -> None:
    if target.is_file():
        target.unlink()
        return
    try:
        subids.remove(target)
    except ProcessError as error:
        raise ControlPlaneError(f"{target} could not be removed: {error.stderr.strip() or error}") from error
