"""A container's sandbox, created by Apptainer: root, mounts and PID namespace, kept alive by `pause`.

Apptainer runs as the root of the pod's user namespace, so it needs neither a setuid starter nor a user namespace per
container. What the pod wants to run in it is then started beside `pause` by `processes`: the program, the words of
`kubectl exec`, probes and hooks all the same way. A start of a container is a new sandbox: what it wrote to its root is
gone, and so are its processes.

Apptainer itself sees the node as the user does, so no container may see Apptainer: each has a process namespace of its
own, below the pod's, in which only `pause` is Apptainer's. Containers that share processes have their programs started
in another one, with a /proc of it over the first: the pod's (`shareProcessNamespace`, see `sharing`) or their target's.
"""

from __future__ import annotations

import asyncio
import csv
import io
import os
import signal
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import cast

from isthmus.podproto.plan import Container, Plan, Propagation, User
from isthmus.supervisor.containers import outputs, sharing
from isthmus.supervisor.runtime import inside, linux, namespaces, tree
from isthmus.supervisor.runtime.namespaces import PodNamespaces
from isthmus.supervisor.runtime.processes import (
    PATH,
    Identity,
    Place,
    Process,
    Processes,
    Program,
    StartError,
    read_all,
)
from isthmus.supervisor.volumes import mounts as volumes
from isthmus.supervisor.volumes import paths, propagation, registry
from isthmus.supervisor.volumes.mounts import Folders

PAUSE = "/.isthmus/pause"
FUSE = "/dev/fuse"
# Apptainer makes this folder afresh: nothing can be mounted in it, all can be made in it.
_STAGED = "/dev/"
START_S = 120.0
STOP_S = 5.0
# A process that forks may be a step ahead.
_KILLS, _KILL_S = 50, 0.02
# What containers have in a usual cluster (containerd).
USUAL = frozenset(
    {
        "CHOWN",
        "DAC_OVERRIDE",
        "FSETID",
        "FOWNER",
        "MKNOD",
        "NET_RAW",
        "SETGID",
        "SETUID",
        "SETFCAP",
        "SETPCAP",
        "NET_BIND_SERVICE",
        "SYS_CHROOT",
        "KILL",
        "AUDIT_WRITE",
    }
)


@dataclass(frozen=True)
class Pod:
    """What all containers of a pod share.

    Attributes:
        plan: of the pod.
        spaces: its namespaces.
        folders: where its files lie.
        processes: starts programs.
        facts: pod_ip, pod_ips, host_ip, host_ips.
        reachable: done when programs may start, as the cluster's Services are reachable; None for at once.
        processes_of: the process namespace of containers that share one.
    """

    plan: Plan
    spaces: PodNamespaces
    folders: Folders
    processes: Processes
    facts: dict[str, str]
    reachable: asyncio.Future[None] | None = None
    processes_of: int | None = None

    async def reached(self) -> None:
        """Wait until programs may start."""
        if self.reachable is not None:
            await asyncio.wait([self.reachable])

    async def inside(self, action: Callable[[], object], kept: tuple[int, ...] = ()) -> object:
        """Run a function among the pod's files, as its root, with the descriptors it needs.

        Raises:
            StartError: what it raised.
        """
        place = self.spaces.files
        try:
            return await self.processes.call(action, place, kept)
        finally:
            place.close()


@dataclass(frozen=True)
class Sandbox:
    """A container that is open.

    Attributes:
        holder: Apptainer.
        place: its namespaces and root.
        complaint: what Apptainer says, complete when it has ended.
        keepers: the processes that hold it open: `pause` and its parent.
    """

    holder: Process
    place: Place
    complaint: asyncio.Future[bytes]
    keepers: frozenset[int]

    @property
    def mounts(self) -> int:
        """The descriptor of its mount namespace."""
        return self.place.namespaces[1][0]

    def kill(self, spared: frozenset[int] = frozenset()) -> bool:
        """Kill what runs in it; return whether there was anything."""
        found = [pid for pid in namespaces.members(self.mounts) if pid != self.holder.pid and pid not in spared]
        for pid in found:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return bool(found)

    async def close(self) -> None:
        """End everything in it, itself too."""
        for _ in range(_KILLS):
            if not self.kill():
                break
            await asyncio.sleep(_KILL_S)
        # Its mounts end with the last descriptor, and Apptainer waits two seconds for those it mounted by FUSE.
        self.place.close()
        if not await self.holder.ended(STOP_S):
            self.holder.kill(signal.SIGKILL)
            await self.holder.ended(STOP_S)
        self.complaint.cancel()


def identity(container: Container) -> Identity:
    """Return whom a container's program runs as."""
    user = container.user or User(0, 0)
    add, drop = ({_bare(name) for name in names} for names in container.capabilities)
    kept = set(linux.CAPABILITIES if "ALL" in add else USUAL)
    kept = set() if "ALL" in drop else kept - drop
    return Identity(user.uid, user.gid, user.groups, frozenset((kept | add) - {"ALL"}), container.escalates)


def _bare(name: str) -> str:
    return name[4:] if name.startswith("CAP_") else name


def bind(source: str, target: str, *, read_only: bool, part: str = "") -> str:
    """Return the value of `--mount`: a line of CSV, so that a path may hold anything but a line's end.

    `part`: the source is an image, and this place in it is what is mounted.
    """
    line = io.StringIO()
    fields = ["type=bind", f"source={source}", f"destination={target}", *(["ro"] if read_only else [])]
    fields += [f"image-src={part}"] if part else []
    csv.writer(line, lineterminator="").writerow(fields)
    return line.getvalue()


def is_mounted(container: Container, place: str) -> bool:
    """Return whether a volume of the container's own lies exactly there."""
    return any(os.path.normpath(mount.path) == place for mount in container.mounts)


def command(container: Container, folders: Folders, root: str, mounts: list[str]) -> list[str]:
    """Return Apptainer's command line; nothing in it is secret.

    Args:
        container: which of the pod's containers.
        folders: the pod's.
        root: the folder that takes what is written to the root; empty for a root that cannot be written.
        mounts: of volumes, from `bind`.
    """
    message = container.termination_path
    usual = {"/dev/shm": folders.shm, "/etc/hosts": folders.hosts}  # noqa: S108
    own = [bind(str(path), place, read_only=False) for place, path in usual.items() if not is_mounted(container, place)]
    own.append(bind(str(inside.FOLDER / inside.HOLD), PAUSE, read_only=True))
    if container.mpi_wrapper:
        own.append(bind(str(ranks_folder(folders)), inside.RANKS, read_only=True))
    # Who is privileged has the devices that a user has, too.
    if "ALL" in container.capabilities.add and os.path.exists(FUSE) and not is_mounted(container, FUSE):
        own.append(bind(FUSE, FUSE, read_only=False))
    if not message.startswith(_STAGED):
        own.append(bind(str(folders.termination(container.name)), message, read_only=False))
    return [
        *("apptainer", "--quiet", "exec", "--contain", "--cleanenv", "--no-home", "--pid"),
        *("--no-mount", "home,tmp,hostfs,bind-paths,cwd"),
        *gpus(),
        *(["--overlay", root] if root else []),
        *(word for mount in (*own, *mounts) for word in ("--mount", mount)),
        container.image,
        PAUSE,
    ]


def ranks_folder(folders: Folders) -> Path:
    """Where a wrapper finds what starts ranks; one container of a pod has them, and paths of sockets are short."""
    return folders.base / "ranks" / "inside"


def gpus() -> list[str]:
    """Return Apptainer's words for the GPUs that Slurm gave the job."""
    return ["--nv"] if os.environ.get("SLURM_JOB_GPUS") and Path("/dev/nvidiactl").exists() else []


def environment(folders: Folders) -> dict[str, str]:
    """Return what Apptainer itself sees."""
    places = {
        name: str(folders.tmp) for name in ("HOME", "APPTAINER_CONFIGDIR", "APPTAINER_TMPDIR", "APPTAINER_CACHEDIR")
    }
    return {"PATH": f"{folders.shields}:{os.environ.get('PATH', PATH)}", "LANG": "C.UTF-8", **places}


async def open_sandbox(pod: Pod, container: Container, target: Sandbox | None = None) -> Sandbox:
    """Have Apptainer make a container, and wait until it is there.

    Args:
        pod: the pod.
        container: which of its containers.
        target: one whose processes it shares, instead of having its own.

    Raises:
        StartError: it cannot be; the message is Apptainer's.
    """
    root, mounts, shared_volumes = await _prepare(pod, container)
    argv = command(container, pod.folders, root, mounts)
    pipes = outputs.pipes(stdin=False)
    _, ready_pipe, errors = pipes.ours
    place = pod.spaces.place()
    try:
        holder = await pod.processes.start(Program(argv, environment(pod.folders)), place, pipes.theirs)
    finally:
        place.close()
        pipes.close_theirs()
    complaint = asyncio.ensure_future(read_all(errors or 0))
    sandbox = None
    try:
        await asyncio.wait_for(_ready(ready_pipe), START_S)
        pid = _find_pause(holder.pid)
        keepers = frozenset((pid, namespaces.parent(pid)))
        sandbox = Sandbox(holder, namespaces.opened(pid, root=True), complaint, keepers)
        shared = pod.processes_of if target is None else target.place.processes
        if shared is not None:
            sandbox = replace(sandbox, place=sandbox.place.among(shared))
        await _lay(pod, sandbox, shared_volumes)
        await _finish(pod, container, sandbox, fresh_proc=shared is not None)
    except (TimeoutError, StartError, OSError) as error:
        why = await _refusal(holder, sandbox, complaint) or str(error) or "Apptainer did not answer"
        raise StartError(why) from error
    finally:
        os.close(ready_pipe)
    return sandbox


async def _refusal(holder: Process, sandbox: Sandbox | None, complaint: asyncio.Future[bytes]) -> str:
    """End a container that could not be opened; return what Apptainer says to it, if anything."""
    if sandbox is not None:
        await sandbox.close()
        return ""
    holder.kill(signal.SIGKILL)
    await holder.ended(STOP_S)
    why = (await complaint).decode(errors="replace").strip().splitlines()
    return _plain(why[-1]) if why else ""


async def _prepare(pod: Pod, container: Container) -> tuple[str, list[str], list[list[str]]]:
    """Make what the container mounts; return its root, Apptainer's words, and what `propagation.lay` has to do."""
    known = {volume.name: volume for volume in pod.plan.volumes}

    def make() -> tuple[str, list[str], list[tuple[str, str, Propagation]]]:
        volumes.fresh_termination(pod.folders, container.name)
        parts = volumes.fresh_parts(pod.folders, container.name)
        words, shared = [], []
        for number, mount in enumerate(container.mounts):
            volume = known[mount.volume]
            source = volumes.source(pod.folders, mount, volume, parts / str(number))
            read_only = mount.read_only or registry.of(volume).is_read_only
            words.append(bind(source, mount.path, read_only=read_only))
            if propagation.is_shared(pod.folders.shared / volume.name):
                shared.append((source, mount.path, mount.propagation))
        root = "" if container.read_only else volumes.fresh_root(pod.folders, container.name)
        return root, words, shared

    return cast("tuple[str, list[str], list[list[str]]]", await pod.inside(make))


async def _lay(pod: Pod, sandbox: Sandbox, shared: list[list[str]]) -> None:
    mounts, root = sandbox.mounts, sandbox.place.root
    if shared and root is not None:
        wanted = [(source, place, how) for source, place, how in shared]
        await pod.inside(partial(propagation.lay, mounts, root, wanted), (mounts, root))


async def _finish(pod: Pod, container: Container, sandbox: Sandbox, *, fresh_proc: bool) -> None:
    # Apptainer brings the node's own resolv.conf, as a file of this container alone.
    text = None if is_mounted(container, "/etc/resolv.conf") else podfile(pod.folders.resolv, pod)
    message = container.termination_path
    await pod.processes.call(partial(_complete, text, message if message.startswith(_STAGED) else ""), sandbox.place)
    if fresh_proc:
        await pod.processes.call(sharing.mount_proc, sandbox.place)


def podfile(path: Path, pod: Pod) -> str:
    """Read one of the pod's small files."""
    return pod.spaces.seen(path).read_text(encoding="utf-8")


def _complete(resolv: str | None, message: str) -> None:
    if resolv is not None:
        Path("/etc/resolv.conf").write_text(resolv, encoding="utf-8")
    if message:
        Path(message).touch()
        Path(message).chmod(0o666)


async def termination_message(pod: Pod, container: Container, sandbox: Sandbox, limit: int) -> str:
    """Read what the program left as its last words."""
    with suppress(StartError):
        return str(await pod.processes.call(partial(_beginning, container.termination_path, limit), sandbox.place))
    return ""


def _beginning(path: str, limit: int) -> str:
    return paths.beginning(path, limit).decode(errors="replace")


async def _ready(ready_pipe: int) -> None:
    loop = asyncio.get_running_loop()
    first: asyncio.Future[None] = loop.create_future()
    loop.add_reader(ready_pipe, first.set_result, None)
    try:
        await first
    finally:
        loop.remove_reader(ready_pipe)
    # It says its process id.
    if not os.read(ready_pipe, 32).strip().isdigit():
        raise StartError("")


def _find_pause(pid: int) -> int:
    """Return the process below Apptainer that is `pause`."""
    found = tree.running(pid, PAUSE)
    if found is None:
        raise StartError("the container ended at once")
    return found


def _plain(line: str) -> str:
    return line.removeprefix("FATAL:").strip()
